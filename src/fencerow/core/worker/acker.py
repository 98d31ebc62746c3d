"""Group commits of outcomes: what ends while one write is in flight is written with the next.

Outcomes stay here until the database has answered for each of them. A missing row is settled by
reading: locked by a stranger (try again), asked to be cancelled (stop it), ended or taken over (drop it).
After a lost reply it reads first as well: finishing is fenced, but a blind repeat would hide what happened.

Successes are written as the first ends of their jobs, and those that the database refuses so once more, as ends of jobs
that may have ended before. What it refuses even then, and of other kinds at once, is found one by one and ends as
failed; what cannot be moved to the finished jobs at all is failed where it is (`fail_in_place`). A group that fails
because of its size is written in halves: it takes the server longer than a statement may, or there is no room for it.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Sequence

from fencerow.core.errors import OlderWorkers, OutcomeUnknown
from fencerow.core.model.describe import FailureCode, describe
from fencerow.core.model.job import Fence
from fencerow.core.model.outcome import Failed, Outcome, Released, Stopped, Succeeded
from fencerow.core.model.state import State
from fencerow.core.store import store
from fencerow.core.store.attempts import MovedJob, Requeued
from fencerow.core.store.outcomes import RULES, WRITINGS
from fencerow.core.telemetry import Fact, Telemetry
from fencerow.core.worker.attempt import Attempt, facts
from fencerow.core.worker.lease import Failover
from fencerow.core.worker.lines import JobLines, Tally
from fencerow.core.worker.pending import Pending, batches
from fencerow.core.worker.roster import Key, Roster
from fencerow.core.worker.wakeups import WakeUps
from fencerow.db.engine import Engine
from fencerow.db.portion import Portion, is_beyond_limits, is_too_much
from fencerow.db.trouble import is_trouble, took_too_long
from fencerow.db.waits import set_within

log = logging.getLogger("fencerow.worker")

BATCH_ROWS_MAX = 1000
TURNS_MAX = 4  # of the event loop, for which outcomes gather
LOCKED_S = 0.05
REFUSED_S = 5.0  # until an outcome is tried again of which the database takes nothing, or has no room for


class Acker:
    """Writes outcomes, in the order in which they came as far as they can be written. Used on the event loop only."""

    def __init__(
        self,
        engine: Engine,
        telemetry: Telemetry,
        roster: Roster,
        wakeups: WakeUps,
        failover: Failover,
        lines: JobLines,
    ) -> None:
        self._engine = engine
        self._telemetry = telemetry
        self._roster = roster
        self._wakeups = wakeups
        self._failover = failover
        self._lines = lines
        self.tally = Tally()
        self._pending: list[Pending] = []
        self._writing: dict[Key, Pending] = {}
        self._apart: list[Pending] = []  # behind a stranger's lock, or refused: tried again after a pause
        self.portion = Portion("outcomes", BATCH_ROWS_MAX)
        self._changed = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._doubt = False

    @property
    def backlog(self) -> int:
        """Outcomes that are not confirmed."""
        return len(self._pending) + len(self._writing) + len(self._apart)

    def unconfirmed(self) -> list[Pending]:
        """Outcomes that the database has not confirmed. For another thread, while the loop does nothing."""
        return [*self._writing.values(), *self._apart, *self._pending]

    def put(self, attempt: Attempt, outcome: Outcome, duration_s: float) -> None:
        """Take an outcome; returns at once."""
        if not self._pending:  # else they are so already
            self._idle.clear()
            self._changed.set()
        self._pending.append(Pending(attempt, attempt.key, outcome, duration_s))

    def committed(
        self, attempt: Attempt, moved: MovedJob, duration_s: float, made: Sequence[Requeued] = ()
    ) -> None:
        """The handler's own transaction has written the success, and made these follow-ups."""
        self._wakeups.announce_queued(made)
        self._confirm([Pending(attempt, attempt.key, Succeeded(b""), duration_s)])
        self._wakeups.announce_ended([moved.id] if moved.awaited else [], succeeded=True)
        if moved.had_turns:
            self._wakeups.announce_free_turns()

    def lose(self, attempt: Attempt, how: str) -> None:
        """The job is not ours any more; nothing is written."""
        log.warning("%s %s", attempt, how)
        self._telemetry.counters.add("leases_lost")
        self._telemetry.emit(Fact.LEASE_LOST, **facts(attempt))
        if self._roster.forget(attempt):
            self._wakeups.wake_claimers()  # suspects are counted over all queues

    async def flushed(self, timeout_s: float) -> bool:
        """Wait until everything is confirmed; false when that took too long."""
        return await set_within(self._idle, timeout_s)

    async def tick(self) -> float:
        """Write what has gathered; the loop's body. Waits until there is something."""
        if not self._writing:
            await self._gather()
        if self._doubt:
            await self._settled(list(self._writing.values()))
            self._doubt = False
            self._wakeups.hear(None)  # what was queued or freed by a write whose reply was lost is not known
        await self._write_all()
        return 0.0

    async def _gather(self) -> None:
        """Wait until something is to be written. What waits apart delays nothing else."""
        self._rejoin()
        while not self._pending:
            if not self._apart:
                self._idle.set()
            self._changed.clear()
            until = min((each.apart_until for each in self._apart), default=None)
            await set_within(self._changed, None if until is None else until - time.monotonic())
            self._rejoin()
        await self._gathered()
        batch, self._pending = self._pending[:BATCH_ROWS_MAX], self._pending[BATCH_ROWS_MAX:]
        self._writing = {each.key: each for each in batch}

    async def _gathered(self) -> None:
        """Let jobs at hand end first, as long as each turn of the loop brings more: else the first go by themselves."""
        for _ in range(TURNS_MAX):
            count = len(self._pending)
            await asyncio.sleep(0)
            if len(self._pending) == count:
                return

    def _rejoin(self) -> None:
        """Take up again what has waited apart for long enough."""
        now = time.monotonic()
        ready = [each for each in self._apart if each.apart_until <= now]
        if ready:
            self._apart = [each for each in self._apart if each.apart_until > now]
            self._pending = [*ready, *self._pending]

    async def _write_all(self) -> None:
        for kind, holder, batch in batches(self._writing.values()):
            await self._write_in_parts("succeed_first" if kind == "succeed" else kind, holder, batch)

    async def _write_in_parts(self, kind: str, holder: str, batch: list[Pending]) -> None:
        """No more at once than the server writes in time, as far as we know by now."""
        while batch:
            rows = self.portion.rows
            part, batch = batch[:rows], batch[rows:]
            await self._write_group(kind, holder, part)

    async def _write_group(self, kind: str, holder: str, batch: list[Pending]) -> None:
        began = time.monotonic()
        try:
            moved = await self._write(kind, holder, batch)
        except Exception as error:
            await self._not_written(kind, holder, batch, error, time.monotonic() - began)
            return
        self.portion.fitted(len(batch), time.monotonic() - began)
        rest = [each for each in batch if each.attempt.claimed.id not in moved]
        if not rest:  # nearly always
            self._confirm(batch)
            return
        self._confirm([each for each in batch if each.attempt.claimed.id in moved])
        self._wait_apart(await self._settled(rest), LOCKED_S)

    async def _not_written(
        self, kind: str, holder: str, batch: list[Pending], error: Exception, took_s: float
    ) -> None:
        """The group failed: try it smaller, raise what waiting may mend, or find the one that is refused."""
        if is_too_much(error):
            await self._too_large(kind, holder, batch, error, took_s)
        elif is_trouble(error):
            if isinstance(error, OutcomeUnknown):
                self.portion.halve(error, len(batch), took_s)  # it may be that it took too long, too
            self._doubt = True
            raise error
        elif kind == "succeed_first":
            await self._write_group("succeed", holder, batch)  # one of them may have ended before
        else:
            await self._one_by_one(kind, holder, batch, error)

    async def _too_large(
        self, kind: str, holder: str, batch: list[Pending], error: Exception, took_s: float
    ) -> None:
        """Nothing of the group is written. One alone that does not fit lets the others pass for a while."""
        self._telemetry.counters.add("outcomes_too_slow" if took_too_long(error) else "outcomes_too_large")
        if self.portion.halve(error, len(batch), took_s):
            await self._write_in_parts(kind, holder, batch)
        elif took_too_long(error):
            log.warning("an outcome took PostgreSQL longer than a statement may (%.1f s)", took_s)
            self._wait_apart(batch, took_s)
        elif is_beyond_limits(error):
            await self._one_by_one(kind, holder, batch, error)
        else:
            self._wait_apart(batch, REFUSED_S)
            raise error  # there is hardly room for the next one either: the loop waits for it

    async def _write(self, kind: str, holder: str, batch: list[Pending]) -> set[str]:
        """Write one group under its fences; returns the ids that moved."""
        writing = WRITINGS[kind]
        written = writing.confirmed(await self._engine.arun(writing.write(batch, holder)))
        self._wakeups.announce_queued(written.queued)
        self._wakeups.announce_ended(written.ended, succeeded=kind == "succeed_first")
        if written.had_turns:
            self._wakeups.announce_free_turns()
        for job_id in written.failed:
            each = next(each for each in batch if each.id == job_id)
            ended = {"duration_s": each.duration_s, "code": FailureCode.CRASHES_EXHAUSTED}
            self._telemetry.counters.add("jobs_failed")
            self._telemetry.emit(Fact.FAILED, **facts(each.attempt), **ended)
        return written.ids

    async def _one_by_one(self, kind: str, holder: str, batch: list[Pending], error: Exception) -> None:
        """The database refused a group: find the one that is at fault and let it fail alone."""
        if len(batch) > 1:
            for each in batch:
                await self._write_group(kind, holder, [each])
            return
        (only,) = batch
        log.error("the outcome of job %s was refused by the database: %s", only.id, error, exc_info=error)
        self._telemetry.counters.add("outcomes_refused")
        if kind == "fail_in_place" or isinstance(error, OlderWorkers):
            self._wait_apart([only], REFUSED_S)  # it stays ours: released, it would run again
        elif isinstance(only.outcome, Failed) and only.outcome.error.code == "outcome_refused":
            await self._write_group("fail_in_place", holder, [only])
        else:
            only.outcome = Failed(describe(error, "outcome_refused"))
            await self._write_group("fail", holder, [only])

    async def _settled(self, rest: list[Pending]) -> list[Pending]:
        """Read what became of outcomes that no statement confirmed; returns those that are still to be written."""
        try:
            fences = await self._engine.arun(store.read_fences([each.id for each in rest]))
        except Exception:
            self._doubt = True
            raise
        return [each for each in rest if self._is_open(each, fences.get(each.id))]

    def _wait_apart(self, rest: list[Pending], pause_s: float) -> None:
        for each in rest:
            del self._writing[each.key]
            each.apart_until = time.monotonic() + pause_s
        self._apart += rest

    def _is_open(self, each: Pending, fence: Fence | None) -> bool:
        claimed = each.attempt.claimed
        if fence is not None and fence.state is State.RUNNING:
            if (fence.holder, fence.attempt) == (each.attempt.holder, claimed.attempt):
                if each.rule.kind in ("requeue", "suspend") and fence.cancel_requested:
                    each.outcome = Stopped("a cancel was asked")
                elif each.rule.kind == "stop" and not fence.cancel_requested:
                    each.outcome = Released("no cancel was asked")
                return True  # a stranger's lock does not last
        elif fence is not None and fence.attempt == claimed.attempt and fence.state in each.rule.states:
            self._confirm([each])  # the reply was lost, the write was not
            self._wakeups.announce_ended([each.id] if fence.state is not State.QUEUED else [])
            return False
        self._writing.pop(each.key, None)
        now = "gone" if fence is None else f"{fence.state}, attempt {fence.attempt}"
        self.lose(each.attempt, f"is over for us: it is {now} now")
        return False

    def _confirm(self, confirmed: Sequence[Pending]) -> None:
        counts = Counter[Fact]()
        for kind, count in Counter([type(each.outcome) for each in confirmed]).items():
            counts[RULES[kind].event] += count
        for event, count in counts.items():
            self._telemetry.counters.add(event, count)
        self.tally.add(counts, [each.id for each in confirmed if isinstance(each.outcome, Released)])
        if self._telemetry.is_heard:
            for each in confirmed:
                rule, extra = each.rule, {"duration_s": each.duration_s}
                self._telemetry.emit(rule.event, **facts(each.attempt), **extra, **rule.facts(each.outcome))
        if self._lines.are_wanted:
            for each in confirmed:
                self._lines.ended(each.attempt, each.outcome, each.duration_s)
        for each in confirmed:
            self._writing.pop(each.key, None)
            if self._roster.forget(each.attempt):
                self._wakeups.wake_claimers()  # suspects are counted over all queues
        last = next((each for each in reversed(confirmed) if each.rule.is_lasting), None)
        if last is not None:
            self._failover.confirmed(*last.attempt.key)
        self._wakeups.made_room()
