"""Every error that a user can meet, in whichever package it is public."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from functools import cache

import fencerow_proof.errors as of_proof
from fencerow import errors
from fencerow.errors import FencerowError


@cache
def by_name() -> Mapping[str, type[FencerowError]]:
    """All errors by their names."""
    found = [*inspect.getmembers(errors, inspect.isclass), *inspect.getmembers(of_proof, inspect.isclass)]
    return {name: kind for name, kind in found if issubclass(kind, FencerowError)}


@cache
def kinds() -> tuple[type[FencerowError], ...]:
    """All errors, by their codes."""
    return tuple(sorted(by_name().values(), key=lambda kind: kind.code))
