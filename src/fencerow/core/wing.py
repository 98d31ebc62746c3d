"""A wing: one feature with all that is its own, told to the core by one record."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Wing:
    """What a feature brings.

    `queries`: the packages in which its named queries lie, each with a folder for each dialect; a folder `schema`
    in one holds the numbered steps that make its tables.
    """

    name: str
    queries: tuple[str, ...] = ()


_wings: tuple[Wing, ...] = ()


def build(wings: Sequence[Wing]) -> None:
    """Said once, by the package itself when it is imported: these are all there are."""
    global _wings
    _wings = tuple(wings)


def wings() -> tuple[Wing, ...]:
    """All wings, those below first."""
    return _wings
