"""What can be wrong with a schedule (82x)."""

from __future__ import annotations

from fencerow.db.errors import exits
from fencerow.db.errors.base import FencerowError


class InvalidSchedule(FencerowError):
    """A schedule does not say when it fires, or says it in a way that cannot work. Nothing was stored."""

    code = "FR-820"
    exit_code = exits.REFUSED


class UnknownSchedule(FencerowError):
    """There is no schedule of that name, or it has no such entity; the closest names are in `why`."""

    code = "FR-824"
    exit_code = exits.FAILED


class ScheduleTaken(FencerowError):
    """Two schedules of one name, or a change by hand of one that code declares. Nothing was changed."""

    code = "FR-825"
    exit_code = exits.REFUSED


class NoEntities(FencerowError):
    """The list of a schedule's entities is empty. That is mostly a mistake of its source, so no row was removed."""

    code = "FR-826"
    exit_code = exits.REFUSED


class InvalidEntities(FencerowError):
    """The function that lists a schedule's entities raised, or returned what cannot be used. Where it is some of them,
    their rows stay as they are, and the others are made; else nothing was changed."""

    code = "FR-827"
    exit_code = exits.REFUSED
