"""A short run by hand, one operation after another, on an engine that records: sound, or with a guard taken out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

from fencerow.core.model.ids import new_id
from fencerow.core.model.job import Claimed, KeyClaim, NewJob
from fencerow.core.store import store
from fencerow.core.store.claims import Mark
from fencerow.db.postgres import PostgresEngine
from fencerow.db.run import Operation
from fencerow.db.sqlite import SqliteEngine
from fencerow.errors import FencerowError
from fencerow_proof.history.check import Options, check
from fencerow_proof.history.engine import RecordingEngine
from fencerow_proof.history.recorder import Recorder
from fencerow_proof.history.report import Report
from tests.kit.asked import submit_keyed
from tests.kit.jobs import LATE_US, AnyEngine, new_job

T = TypeVar("T")
Cut = tuple[str, str, str]  # a query's name, a text of it, what stands there instead


class Play:
    """One recorded engine and what tests say to it."""

    def __init__(self, engine: AnyEngine, folder: Path) -> None:
        self.engine = RecordingEngine(engine, Recorder(folder, sweep_s=0.2))
        self.folder = folder

    def run(self, operation: Operation[T]) -> T:
        return self.engine.run(operation)

    def refused(self, operation: Operation[Any]) -> None:
        """Run what a sound engine refuses."""
        with suppress(FencerowError):
            self.run(operation)

    def submit(self, **changes: Any) -> str:
        job = new_job(**changes)
        self.run(store.submit([job]))
        return job.id

    def keyed(self, key: str, fingerprint: str = "f", job: NewJob | None = None) -> str:
        """Submit under a key; returns the id that was answered."""
        made = job or new_job(scope="s", key=key)
        claim = KeyClaim(scope="s", key=key, job_id=made.id, fingerprint=fingerprint, lifetime_s=60.0)
        (answer,) = self.run(submit_keyed([made], [claim]))
        return answer.id

    def worker(self, lease_s: float = 30.0) -> str:
        holder = new_id()
        assert self.run(
            store.register(holder=holder, name="w", host="h", pid=1, info='{"slots":2}', lease_s=lease_s)
        )
        return holder

    def claim(self, holder: str, limit: int = 1, lane: int = 0) -> list[Claimed]:
        claim = store.claim("mail", [Mark(lane)], holder=holder, names=["send"], limit=limit, margin_s=60.0)
        return self.run(claim)

    def suspect(self, holder: str) -> list[Claimed]:
        return self.run(store.claim_suspect("mail", holder=holder, names=["send"], margin_s=60.0))

    def succeed(self, job: str, attempt: int, holder: str) -> bool:
        return bool(self.run(store.succeed([store.Success(job, attempt, "1")], holder=holder)))

    def fail(self, job: str, attempt: int, holder: str) -> None:
        self.run(store.fail([store.Failure(job, attempt, '{"type":"E"}')], holder=holder))

    def retry(self, job: str, attempt: int, holder: str) -> None:
        again = store.Requeue(id=job, attempt=attempt, kind="retried", failures=1)
        self.run(store.requeue([again], holder=holder))

    def die(self) -> list[str]:
        """Declare dead whose lease is over, as a worker does whose own is not."""
        return self.run(store.die(judge=self.worker(lease_s=1e6), until_us=LATE_US))

    def bury(self, *holders: str) -> None:
        """Declare dead who may be, and take back what these hold."""
        self.die()
        self.run(store.reclaim(holders, limit=10, actor="t"))

    def finish(self, names: int = 20) -> None:
        """Run to its end whatever is left."""
        holder = self.worker()
        for _ in range(names):
            for job in self.claim(holder, limit=5) + self.suspect(holder):
                self.succeed(job.id, job.attempt, holder)

    def judge(self, **options: Any) -> Report:
        return check([self.folder], self.engine, Options(slack_s=0.1, **options))


@contextmanager
def altered(engine: AnyEngine, cuts: Sequence[Cut]) -> Iterator[AnyEngine]:
    """A second engine on the same database, with texts of its queries changed."""
    queries = engine.queries
    for name, old, new in cuts:
        queries = queries.altered(name, old, new)
    made: AnyEngine
    if isinstance(engine, PostgresEngine):
        made = PostgresEngine(engine.conninfo, queries)
    else:
        assert isinstance(engine, SqliteEngine)
        made = SqliteEngine(engine.path, queries)
    try:
        yield made
    finally:
        made.close()
