"""Records of the library as the typed documents of the gateway: the fields of the command's documents (docs/cli.md)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar

import msgspec

from fencerow.command.documents import plain

D = TypeVar("D", bound=msgspec.Struct)


def told(kind: type[D], record: object, **more: Any) -> D:
    """A record as a document of this kind: a field `ended_at_us` is its `ended_at`, and what it does not name is left
    out."""
    return msgspec.convert({**plain(record), **more}, kind)


def each(kind: type[D], records: Iterable[object]) -> list[D]:
    """The same of each of them."""
    return [told(kind, record) for record in records]
