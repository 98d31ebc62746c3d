"""Workers, as the doctor sees what they serve and how much they hold."""

from __future__ import annotations

import msgspec

from fencerow.core.model.job import JobRecord
from fencerow.core.model.worker import WorkerRecord


class WorkerLoad(msgspec.Struct, frozen=True):
    """A living worker, what it says it serves, and how many jobs it holds."""

    worker: WorkerRecord
    running: int
    runs_suspect: bool

    def knows(self, job: JobRecord) -> bool:
        """Whether it has the job's handler. One that did not say is taken to."""
        return self.worker.names is None or job.name in self.worker.names

    def serves(self, job: JobRecord) -> bool:
        """Whether it looks at the job's queue. One that did not say is taken to."""
        return self.worker.queues is None or job.queue in self.worker.queues

    @property
    def clock_behind_s(self) -> float:
        """How far the database's clock went back behind what it has seen it reach; it takes what was due before."""
        return 0.0 if self.worker.stated is None else self.worker.stated.clock_behind_s

    @property
    def free(self) -> int | None:
        """Slots that hold no job."""
        return None if self.worker.slots is None else max(0, self.worker.slots - self.running)
