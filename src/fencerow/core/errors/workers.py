"""What operators meet who look at workers and change them (6xx)."""

from __future__ import annotations

import fencerow.db.errors.exits as exits
from fencerow.db.errors.base import FencerowError


class WorkerNotFound(FencerowError):
    """No worker of that id, name or host is registered, or there are several where one was meant."""

    code = "FR-601"


class WorkerGone(FencerowError):
    """That registration has ended: the worker stopped, was declared dead, or registered again under another id."""

    code = "FR-602"


class OrderRefused(FencerowError):
    """The worker was not changed: somebody else changed it first, it is leaving, or it cannot be changed.

    `version` is the order that holds now. Look at the worker, then ask again.
    """

    code = "FR-603"

    def __init__(self, what: str, why: str = "", fix: str = "", *, version: int | None = None) -> None:
        super().__init__(what, why, fix)
        self.version = version


class OlderWorkers(FencerowError):
    """A job needs a rule that a living worker of an older release does not know. Nothing was stored.

    Deploy this release to all workers first. A worker that has died counts until its lease ends.
    """

    code = "FR-609"
    exit_code = exits.REFUSED
    repeat = "yes"
