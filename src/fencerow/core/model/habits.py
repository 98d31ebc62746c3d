"""Which words of other systems are understood here: the names of all features are known above the core alone.

Told by name alone, so that a program which writes no wrong call does not load them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Literal, NamedTuple

from fencerow.core.errors import UnknownVerb


class OthersWords(NamedTuple):
    """`all`: every word for an option. `meant`: why one is refused where these options are known, and what to write
    instead; None if nothing here means it. `verbs`: what to write instead of a verb that jobs or apps are asked for."""

    all: Collection[str]
    meant: Callable[[str, Iterable[str]], tuple[str, str] | None]
    verbs: Mapping[Literal["job", "app"], Mapping[str, str]]


_words: Callable[[], OthersWords] | None = None


def understand(words: Callable[[], OthersWords]) -> None:
    """Said once, by the package itself when it is imported."""
    global _words
    _words = words


def words_of_others() -> OthersWords:
    """What a wrong call is compared with."""
    assert _words is not None, "the package says it when it is imported"
    return _words()


def no_attribute(owner: object, kind: Literal["job", "app"], it: str, name: str) -> AttributeError:
    """The error for an attribute that is not there; `it` is how a program calls the owner.

    No type checker sees verbs of others. At run time they are missing attributes with a better message: `hasattr` says
    no.
    """
    instead = None if name.startswith("_") else words_of_others().verbs[kind].get(name)
    if instead is None:
        return AttributeError(
            f"{type(owner).__name__!r} object has no attribute {name!r}", name=name, obj=owner
        )
    return UnknownVerb(
        f"{it} has no {name!r}", "that is another system's word for it", instead.replace("{it}", it)
    )
