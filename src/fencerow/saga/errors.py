"""Errors of sagas (99x)."""

from __future__ import annotations

from fencerow.core.errors.declarations import DeclarationError
from fencerow.db.errors.base import FencerowError
from fencerow.db.errors.input import InvalidInput


class InvalidSaga(DeclarationError):
    """`app.saga` was told of a job that cannot be undone, or of functions that cannot undo. Nothing was declared."""

    code = "FR-989"


class UndoNotPossible(InvalidInput):
    """A step names an `undo=` that the saga of its job does not list, or its job has no saga. Nothing was done."""

    code = "FR-990"


class UndoMissing(FencerowError):
    """A compensation is to call a function that the saga no longer lists. It is tried again as every job is.

    Add the function to `app.saga(..., undo=[...])` under its old name, and revive the compensation.
    """

    code = "FR-991"
