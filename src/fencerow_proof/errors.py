"""What stops the tools from proving anything: `fencerow check` (77x), `fencerow rerun` (950) and the explorer (78x)."""

from __future__ import annotations

from fencerow.db.errors import exits
from fencerow.db.errors.base import FencerowError


class NothingToCheck(FencerowError):
    """There is no such job, or it has no handler that runs one job. Name it as MODULE:JOB."""

    code = "FR-771"
    exit_code = exits.REFUSED


class CheckArguments(FencerowError):
    """The arguments of the check do not fit the job's parameters. Nothing was run."""

    code = "FR-772"
    exit_code = exits.REFUSED


class CheckNeedsMore(FencerowError):
    """The handler does not succeed even once: it needs a table, a row or another system that is not there."""

    code = "FR-773"
    exit_code = exits.REFUSED


class NothingRecorded(FencerowError):
    """The handler ran and did nothing that the check can see, so it can say nothing about it."""

    code = "FR-774"
    exit_code = exits.REFUSED


class ScratchNotEmpty(FencerowError):
    """The database that was named for the check holds tables: a check only works in an empty one."""

    code = "FR-775"
    exit_code = exits.REFUSED


class CheckStuck(FencerowError):
    """A run of the handler did not end in time."""

    code = "FR-776"
    exit_code = exits.REFUSED


class RerunNotPossible(FencerowError):
    """A stored job cannot run again beside its database: `why` says what keeps it. Nothing was run."""

    code = "FR-777"
    exit_code = exits.REFUSED


class CannotExplore(FencerowError):
    """The explorer cannot begin: an actor, the setup or the database is not usable. Correct it."""

    code = "FR-781"


class NotRepeatable(FencerowError):
    """The same order had another result the second time: an actor depends on more than the database."""

    code = "FR-782"


class ActorStuck(FencerowError):
    """An actor neither reached a statement nor ended. It waits for something that is not the database."""

    code = "FR-783"
