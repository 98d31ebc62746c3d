"""Errors of the tools in `fencerow.testing` (78x): the explorer and the pytest plugin."""

from __future__ import annotations

from fencerow.core.errors.base import FencerowError


class CannotExplore(FencerowError):
    """The explorer cannot begin: an actor, the setup or the database is not usable. Correct it."""

    code = "FR-781"


class NotRepeatable(FencerowError):
    """The same order came out otherwise: an actor depends on more than the database."""

    code = "FR-782"


class ActorStuck(FencerowError):
    """An actor neither reached a statement nor ended. It waits for something that is not the database."""

    code = "FR-783"


class DrainUnfinished(FencerowError):
    """Jobs were still due when `drain` had run as many attempts, or as long, as it may."""

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
