"""Which words of other systems are understood here: the names of all features are known above the core alone.

Told by name alone, so that a program which writes no wrong call does not load them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import NamedTuple


class OthersWords(NamedTuple):
    """`all`: every word. `meant`: why a word is refused where these options are known, and what to write instead;
    None if nothing here means it."""

    all: Collection[str]
    meant: Callable[[str, Iterable[str]], tuple[str, str] | None]


_words: Callable[[], OthersWords] | None = None


def understand(words: Callable[[], OthersWords]) -> None:
    """Said once, by the package itself when it is imported."""
    global _words
    _words = words


def words_of_others() -> OthersWords:
    """What a wrong call is compared with."""
    assert _words is not None, "the package says it when it is imported"
    return _words()
