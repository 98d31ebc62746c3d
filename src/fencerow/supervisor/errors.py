"""Errors of several worker processes under one command (608)."""

from __future__ import annotations

from fencerow.db.errors.base import FencerowError


class WorkersNotStarted(FencerowError):
    """The processes of `fencerow worker --processes` died at their start again and again, or refused it.

    What each of them said stands above it in the log. The command ends with their exit code.
    """

    code = "FR-608"

    def __init__(self, what: str, why: str = "", fix: str = "", *, exit_code: int | None = None) -> None:
        super().__init__(what, why, fix)
        if exit_code:
            self.exit_code = exit_code
