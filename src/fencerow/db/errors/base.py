"""What all errors of Fencerow have: what was found, what was expected, what to do, and a stable code."""

from __future__ import annotations

import re

import fencerow.db.errors.exits as exits

PUBLIC = "fencerow.errors"
FAMILY = re.compile(r"fencerow\.(?:core|db)\.errors\.\w+|fencerow\.[\w.]+\.errors")


class FencerowError(Exception):
    """Base of all errors raised by Fencerow.

    `code` is stable. `what` says what happened with the value found, `why` what was expected,
    `fix` what to do next. `repeat` tells a caller whether the very same call may be made again:
    "yes" (nothing was stored), "ask" (the outcome is unknown: look first), "no" (it would fail again).
    """

    code = "FR-000"
    repeat = "no"
    exit_code = exits.FAILED  # of a command that meets it; docs/cli.md has the table

    def __init_subclass__(cls) -> None:
        # The public name is what is stored with a failed job and stands in tracebacks, wherever the family lies.
        if FAMILY.fullmatch(cls.__module__):
            cls.__module__ = PUBLIC

    def __init__(self, what: str, why: str = "", fix: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.why = why
        self.fix = fix

    def __str__(self) -> str:
        return f"{self.code}: " + "\n  ".join(self._parts())

    @property
    def line(self) -> str:
        """The same on one line: for what is stored, and for tables."""
        return f"{self.code}: " + "; ".join(self._parts())

    def __format__(self, spec: str) -> str:
        """Inside of another text it stands on one line."""
        return format(self.line, spec)

    def lines(self) -> tuple[str, str, str]:
        """What happened, why, and what to do: three lines without control characters."""
        return (f"{self.code}: {self.what}", self.why or "-", self.fix or "-")

    def _parts(self) -> list[str]:
        return [part for part in (self.what, self.why, self.fix) if part]


FencerowError.__module__ = PUBLIC


def line_of(error: BaseException) -> str:
    """What an error says, on one line if it is ours."""
    return error.line if isinstance(error, FencerowError) else str(error)
