"""What the database has confirmed to this worker: its lease, by the steady clock of its own host, and its writes.

The database decides who owns what; this only makes the worker stop earlier than others may start, by the rule of all
leases (`db/leases.py`; it is River's trust window). Other than a mutex, a worker that was late goes on after its next
renewal: that its row lives says that nobody has declared it dead.

A gap in the renewals also takes away the right to declare others dead: after an outage everybody's
lease has run out, and whoever wakes first would execute all the others. So does a jump of the database's clock:
after it the lease of everybody who has not renewed since says nothing.
"""

from __future__ import annotations

import logging
import threading
import time

import msgspec

from fencerow.core.background.reaper import Warrant
from fencerow.core.errors import OutcomeUnknown, Unavailable
from fencerow.core.model.loss import Loss
from fencerow.core.model.state import State
from fencerow.core.store import store
from fencerow.db.engine import Engine
from fencerow.db.leases import deadline_of, margin_of
from fencerow.db.steady import steady

log = logging.getLogger("fencerow.worker.keeper")

# Rows of workers that ended are removed an hour later: after a longer silence a missing row tells nothing.
JUDGED_S = 3000.0
LOSSES_MAX = 10
ASK_AGAIN_S = 600.0


class WorkerLease:
    """The holder id of the present registration and how long it may be relied upon. Safe from any thread."""

    def __init__(self, lease_s: float, renew_s: float) -> None:
        self.lease_s = lease_s
        self.margin_s = margin_of(lease_s)
        # What an outage may last that nobody here notices: others who could not renew meanwhile have a lease still.
        self._gap_s = max(min(renew_s * 2.5, lease_s / 2), 0.5)
        self._lock = threading.Lock()
        # The id under which jobs are claimed now; None while there is no registration.
        self.holder: str | None = None
        self._starts_nothing = False
        self._deadline = 0.0
        self._renewed_at = 0.0
        self._gapless_since = 0.0
        self._replied_at = 0.0
        self._renewed_us: int | None = None  # the same renewal by the database's clock
        self.hurried = threading.Event()  # the keeper waits for it

    def renew_now(self) -> None:
        """Let the keeper renew and compare at once: of a cancel or an order was hinted, or there is news to state."""
        self.hurried.set()

    def begin(self, holder: str, sent: float) -> None:
        """A fresh registration was made by a statement sent at this `steady()` time."""
        with self._lock:
            self.holder = holder
            self._deadline = deadline_of(self.lease_s, sent)
            self._renewed_at = sent
            self._gapless_since = steady()  # not `sent`: the row was written after that
            self._renewed_us = None

    def renewed(self, sent: float, at_us: int) -> None:
        """A renewal sent at this `steady()` time succeeded, at this instant of the database."""
        with self._lock:
            now = steady()
            if sent - self._renewed_at > self._gap_s or self._may_have_jumped(sent, at_us):
                self._gapless_since = now  # not `sent`: what broke the run may have been later
            self._deadline = deadline_of(self.lease_s, sent)
            self._renewed_at, self._replied_at = sent, now
            self._renewed_us = at_us

    def _may_have_jumped(self, sent: float, at_us: int) -> bool:
        """Whether the database's clock may have gone otherwise than ours since the last renewal, by more than the
        margin: somewhere between sent and reply it was read."""
        if self._renewed_us is None:
            return False  # since the registration; a lease from there everybody has renewed once more
        passed_s = (at_us - self._renewed_us) / 1e6
        most_s = passed_s - (sent - self._replied_at)
        least_s = passed_s - (steady() - self._renewed_at)
        return most_s > self.margin_s or least_s < -self.margin_s

    def stumbled(self) -> None:
        """A renewal failed: the gapless run is over, the lease itself may still stand."""
        with self._lock:
            self._gapless_since = steady() + self._gap_s

    def end(self) -> None:
        """The registration is over, by death or by retirement."""
        with self._lock:
            self.holder = None
            self._deadline = 0.0

    def start_nothing(self) -> None:
        """From now on nothing may be started here, whatever renewals say: the process is about to end."""
        self._starts_nothing = True

    def holds(self) -> bool:
        """Whether new work may be started."""
        return not self._starts_nothing and self.holder is not None and steady() < self._deadline

    def may_judge(self) -> bool:
        """Whether others may be declared dead: own renewals went well without a gap for one whole lease."""
        return self.holds() and steady() - self._gapless_since >= self.lease_s

    def warrant(self) -> Warrant | None:
        """The right to declare others dead, if there is one.

        It ends, by the database's clock, a margin after this moment, and when the renewal it rests on is followed
        by a gap. A statement that comes later than that was held up by the very outage which made the others
        late, or the clock has jumped since the renewal: who is late by less than the margin has stopped already.
        """
        moment = steady()
        with self._lock:
            if not self.may_judge() or self.holder is None or self._renewed_us is None:
                return None
            valid_s = min(self._gap_s, moment - self._renewed_at + self.margin_s)
            return Warrant(self.holder, self._renewed_us + round(valid_s * 1_000_000))


class Failover:
    """What the database has confirmed to this worker. A database that knows less has lost it.

    A standby that is promoted, or a backup that is restored, holds a beginning of what was committed and nothing after
    it. So the newest confirmed write decides for all: the last renewal, and an outcome confirmed since. Used in the
    keeper's thread, but for `confirmed` and `doubted`.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._watches = engine.traits.has_server
        self._server: str | None = None
        self._ask_from = 0.0
        self._news = False
        self._losses: list[Loss] = []
        self._renewed_us: int | None = None
        self._confirmed_at = 0.0
        self._outcome: tuple[str, int, float] | None = None  # id, attempt, and when it was confirmed

    def described(self) -> dict[str, object]:
        """What the worker's row says of it."""
        if not self._watches:
            return {}
        return {"server": self._server, "lost": msgspec.to_builtins(self._losses)}

    def registered(self) -> None:
        """A registration was confirmed."""
        self._renewed_us, self._outcome, self._confirmed_at = None, None, steady()

    def renewed(self, sent: float, at_us: int) -> None:
        """A renewal that was sent at this `steady()` time was confirmed."""
        self._renewed_us, self._confirmed_at = at_us, sent
        outcome = self._outcome
        if outcome is not None and outcome[2] <= sent:
            self._outcome = None

    def confirmed(self, job_id: str, attempt: int) -> None:
        """The database has confirmed the outcome of an attempt. Of several at once, one will do."""
        self._outcome = (job_id, attempt, steady())

    def look(self, holder: str | None) -> bool:
        """Compare the database with what it has confirmed; true when there is news for the worker's row.

        To be called before a renewal, which would write over what tells.
        """
        if not self._watches:
            return False
        before, self._server = self._server, self._identity() or self._server
        moved = before is not None and self._server != before
        lost = holder is not None and self._lost(holder, moved)
        if lost:
            log.error(
                "the database has lost writes that it had confirmed to this worker (server %s, before %s): jobs that "
                "were accepted may be missing and others run again; see docs/postgresql.md",
                self._server,
                before,
            )
        elif moved:
            log.warning(
                "the database is on another server or timeline now (%s, before %s); nothing that it had confirmed to "
                "this worker is missing",
                self._server,
                before,
            )
        news, self._news = lost or moved or self._news, False
        return news

    def doubted(self, job_id: str, attempt: int) -> None:
        """A claim brought an attempt that was claimed before: the database has forgotten the first time."""
        if self._watches:
            log.error("job %s attempt %d was claimed twice: the database has gone back", job_id, attempt)
            self._news = True
            self._note(None)

    def _lost(self, holder: str, moved: bool) -> bool:
        seen_us = self._engine.run(store.last_renewal(holder=holder))
        if seen_us is None:
            missing = steady() - self._confirmed_at < JUDGED_S
        else:
            missing = self._renewed_us is not None and seen_us < self._renewed_us
        if moved and not missing:  # without a failover it was an operator who deleted the job
            missing = self._outcome_is_missing(holder)
        if missing:
            self._note(seen_us)
        return missing

    def _outcome_is_missing(self, holder: str) -> bool:
        outcome = self._outcome
        if outcome is None:
            return False
        job_id, attempt, _ = outcome
        fence = self._engine.run(store.read_fences([job_id])).get(job_id)
        if fence is None:
            return True
        under_us = fence.state is State.RUNNING and (fence.holder, fence.attempt) == (holder, attempt)
        return under_us or fence.attempt < attempt

    def _note(self, kept_until_us: int | None) -> None:
        loss = Loss(time.time_ns() // 1000, kept_until_us, self._renewed_us, self._server)
        self._losses = [*self._losses, loss][-LOSSES_MAX:]
        self._outcome = None
        self._renewed_us = kept_until_us or self._renewed_us

    def _identity(self) -> str | None:
        """The server and its timeline; None where a provider does not tell."""
        if steady() < self._ask_from:
            return None
        try:
            return self._engine.run(store.server_identity())
        except (Unavailable, OutcomeUnknown):
            raise
        except Exception as error:
            # Some providers refuse the functions that tell it; each refusal is a line in the server's log.
            self._ask_from = steady() + ASK_AGAIN_S
            log.info("this database does not tell its server and timeline: %s", error)
            return None
