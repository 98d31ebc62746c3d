"""What can be refused by `once`, by a dedupe window, and by `replace_for` (72x)."""

from __future__ import annotations

from fencerow.db.errors.base import FencerowError


class OnceConflict(FencerowError):
    """The key was used for another payload, so it names something else. Nothing was done.

    `owner` is whoever has the key. Send the same payload to get its result, or use another key.
    """

    code = "FR-721"

    def __init__(self, what: str, why: str = "", fix: str = "", *, owner: str = "") -> None:
        super().__init__(what, why, fix)
        self.owner = owner


class OnceRunning(FencerowError):
    """Somebody else does this very thing now, so there is no result yet. `owner` is who. Ask again later."""

    code = "FR-722"
    repeat = "yes"

    def __init__(self, what: str, why: str = "", fix: str = "", *, owner: str = "") -> None:
        super().__init__(what, why, fix)
        self.owner = owner


class OnceLost(FencerowError):
    """The lease of a key ran out and somebody else took the key over: the stored result is not that of this run."""

    code = "FR-723"


class OnceMisuse(FencerowError):
    """`once` or `replace_for` was used in a way that makes no sense, such as ending the same run twice."""

    code = "FR-724"


class SourceBusy(FencerowError):
    """Somebody else computes the same or newer rows of this source and did not finish within `wait_s`."""

    code = "FR-725"
    repeat = "yes"

    def __init__(self, what: str, why: str = "", fix: str = "", *, owner: str = "") -> None:
        super().__init__(what, why, fix)
        self.owner = owner


class SourceConflict(FencerowError):
    """One version of a source has two contents, or a source that has versions came without one."""

    code = "FR-726"


class UnusableTable(FencerowError):
    """The user's table is not there, or lacks a column that was named. Nothing was changed."""

    code = "FR-727"
