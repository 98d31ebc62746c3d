"""What an examination finds."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from fencerow.core.errors import FencerowError


class Level(StrEnum):
    """How much a finding matters. Only `fail` makes the examination fail."""

    OK = "ok"
    INFO = "info"
    WARN = "warn"
    FAIL = "fail"


class Finding(msgspec.Struct, frozen=True):
    """One check: its name, how it stands, what was found, and what to do if something should be done."""

    name: str
    level: Level
    found: str
    fix: str | None = None


def ok(name: str, found: str) -> Finding:
    return Finding(name, Level.OK, found)


def info(name: str, found: str, fix: str | None = None) -> Finding:
    return Finding(name, Level.INFO, found, fix)


def warn(name: str, found: str, fix: str) -> Finding:
    return Finding(name, Level.WARN, found, fix)


def fail(name: str, found: str, fix: str) -> Finding:
    return Finding(name, Level.FAIL, found, fix)


def failed(name: str, error: FencerowError) -> Finding:
    """A check that could not be made, or whose answer is one of our errors."""
    what, why, fix = error.lines()
    return fail(name, what if why == "-" else f"{what} ({why})", fix)
