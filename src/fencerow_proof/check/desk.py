"""What the database's side of a worker does around the runs: claim, take back from the dead, acknowledge."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from fencerow.core.errors import Busy
from fencerow.core.model.codec import inline_args
from fencerow.core.model.job import Claimed
from fencerow.core.model.state import State
from fencerow.core.store import store
from fencerow.db.engine import Engine
from fencerow_proof.check.wire import Ended, Loaded
from fencerow_proof.errors import CheckStuck

JOBS = ("00000000-0000-7000-8000-0000000000c1", "00000000-0000-7000-8000-0000000000c2")
# So many attempts at most: a job may put itself back often before it gets on.
HOLDERS = tuple(f"00000000-0000-4000-8000-0000000000{number:02x}" for number in range(0xA0, 0xB8))
LEASE_S = 86_400.0  # a check holds a run for as long as it wants; who is dead is said, not waited for
MARGIN_S = 3600.0


class Desk:
    """Speaks for workers that the checked job is claimed by; the handler's processes know nothing of it."""

    def __init__(self, loaded: Loaded) -> None:
        self._loaded = loaded

    def open(self, engine: Engine) -> None:
        """Register the workers; once, in the pattern."""
        for number, holder in enumerate(HOLDERS):
            engine.run(
                store.register(
                    holder=holder, name=f"check-{number}", host="check", pid=1, info="{}", lease_s=LEASE_S
                )
            )

    def claim(self, engine: Engine, holder: str, count: int) -> list[Claimed]:
        """Claim the checked jobs, which are due; in the order of `JOBS`."""
        lanes, _ = engine.run(store.lanes(self._loaded.queue))
        marks = [store.Mark(lane.priority, lane=lane.name) for lane in lanes]
        found = engine.run(
            store.claim(
                self._loaded.queue,
                marks,
                holder=holder,
                names=[self._loaded.name],
                limit=count,
                margin_s=MARGIN_S,
            )
        )
        if len(found) < count:
            raise CheckStuck(
                "the scratch job could not be claimed", f"{len(found)} of {count} were", "report it"
            )
        return sorted((self._with_args(engine, each, holder) for each in found), key=lambda each: each.id)

    def claim_again(self, engine: Engine, dead: str, holder: str) -> Claimed | None:
        """Declare a holder dead and let another have its job; None when there was nothing left to take.

        Raises:
            Busy: an open transaction holds the job's row, or the SQLite file.
        """
        engine.run(store.retire(holder=dead))
        engine.run(store.reclaim([dead], limit=10, actor="check"))
        found = engine.run(
            store.claim_suspect(
                self._loaded.queue, holder=holder, names=[self._loaded.name], margin_s=MARGIN_S
            )
        )
        if not found:
            self._refuse_locked(engine, dead, JOBS)
            return None
        return self._with_args(engine, found[0], holder)

    def acknowledge(self, engine: Engine, claimed: Claimed, holder: str, ended: Ended) -> bool:
        """Store a success; false when the job belongs to a newer attempt.

        Raises:
            Busy: an open transaction holds the job's row, or the SQLite file.
        """
        success = store.Success(claimed.id, claimed.attempt, ended.result or "null")
        if engine.run(store.succeed([success], holder=holder)):
            return True
        self._refuse_locked(engine, holder, [claimed.id])
        return False

    def _refuse_locked(self, engine: Engine, holder: str, jobs: Sequence[str]) -> None:
        """Nothing was moved: because none of these is this holder's any more, or because its row is locked."""
        for fence in engine.run(store.read_fences(list(jobs))).values():
            if (fence.state is State.RUNNING and fence.holder == holder) or fence.state is State.QUEUED:
                raise Busy("the job's row is locked", "by an open transaction of a run", "")

    def _with_args(self, engine: Engine, claimed: Claimed, holder: str) -> Claimed:
        if inline_args(claimed.args) is not None:
            return claimed
        text = engine.run(store.fetch_args(claimed.id, holder=holder, attempt=claimed.attempt))
        return msgspec.structs.replace(claimed, args=msgspec.Raw((text or "null").encode()))
