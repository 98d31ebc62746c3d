"""What a process ran out of (4xx)."""

from __future__ import annotations

from fencerow.db.errors.base import FencerowError


class OutOfResources(FencerowError):
    """The process had no descriptors, threads or memory left: at its start, or a worker's for a whole lease.

    It has ended. Start it again, with a higher limit or without what keeps them open.
    """

    code = "FR-604"
