"""Errors of who names jobs and workers by a part of their ids (214)."""

from __future__ import annotations

from fencerow.db.errors.input import InvalidInput


class AmbiguousId(InvalidInput):
    """Several ids begin with what was given as the beginning of one; the first of them are in `candidates`."""

    code = "FR-214"

    def __init__(self, what: str, why: str = "", fix: str = "", *, candidates: tuple[str, ...] = ()) -> None:
        super().__init__(what, why, fix)
        self.candidates = candidates
