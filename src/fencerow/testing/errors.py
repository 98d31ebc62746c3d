"""Errors of the kit in `fencerow.testing` (78x): `drain` and the pytest plugin."""

from __future__ import annotations

from fencerow.db.errors.base import FencerowError


class DrainUnfinished(FencerowError):
    """Jobs were still due when `drain` reached its limit of attempts or of time."""

    code = "FR-784"


class JobsDidNotSucceed(FencerowError):
    """`drain(..., check=True)` ran jobs that failed or will be tried again. The message has their errors."""

    code = "FR-785"


class NoTestDatabase(FencerowError):
    """The plugin cannot provide the database that a test asks for. Install PostgreSQL, or choose SQLite."""

    code = "FR-786"


class NoTestApp(FencerowError):
    """The fixture `fencerow_app` does not know which app is meant. Name it in pytest's configuration."""

    code = "FR-787"
