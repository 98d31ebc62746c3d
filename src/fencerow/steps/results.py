"""How the result of a step is kept: as that of a job, by the type that its function declares."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, TypeVar

from fencerow.core.model.packed import Bound
from fencerow.core.model.packing import Packing
from fencerow.core.model.signature import return_annotation
from fencerow.core.model.value import ValueCodec


def codec_of(function: Callable[..., Any]) -> ValueCodec:
    """By what the function says that it returns; where it does not say, plain JSON data.

    Raises:
        DeclarationError: values of that type cannot be written as JSON and read back.
    """
    try:
        annotation = return_annotation(function)
    except (TypeError, ValueError):  # a builtin tells nothing of itself
        return _codec(Any)
    if isinstance(annotation, TypeVar):  # asyncio.to_thread and the like return whatever they are given
        return _codec(Any)
    try:
        return _codec(annotation)
    except TypeError:  # a type that cannot be a key of the cache
        return ValueCodec.of(annotation)


@lru_cache(maxsize=256)
def _codec(annotation: Any) -> ValueCodec:
    return ValueCodec.of(annotation)


def packed(packing: Packing, job_id: str, name: str, encoded: bytes) -> str:
    """A result as it is stored: sealed where the app seals."""
    return packing.inside.pack(encoded, Bound("step", job_id, name)).decode()


def unpacked(packing: Packing, job_id: str, name: str, stored: str) -> bytes:
    """A stored result as it was encoded."""
    return packing.unpack(stored.encode(), Bound("step", job_id, name))
