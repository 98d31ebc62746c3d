"""`Job`: the running job as its handler sees it, the core's with the verbs of the wings."""

from __future__ import annotations

from fencerow.output.job_verbs import OutputVerbs
from fencerow.saga.job_verbs import SagaVerbs

__all__ = ["Job"]


class Job(SagaVerbs, OutputVerbs):
    """One attempt of a job, as its handler sees it.

    In an `async def` handler, await what is said by `progress`, `log`, `emit`, `step`, `sleep` and `wait_for`; in a
    plain `def` handler they are done when they return. Every write names the attempt. If the attempt has lost its
    lease, the write changes nothing and raises `LeaseLost`.
    """

    __slots__ = ()
