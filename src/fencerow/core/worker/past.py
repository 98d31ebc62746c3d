"""What the database has confirmed to this worker. A database that knows less has lost it.

A standby that is promoted, or a backup that is restored, holds a beginning of what was committed and nothing after
it. So the newest confirmed write decides for all: the last renewal, and an outcome confirmed since.
"""

from __future__ import annotations

import logging
import time

import msgspec

from fencerow.core.db.engine import Engine
from fencerow.core.db.steady import steady
from fencerow.core.errors import OutcomeUnknown, Unavailable
from fencerow.core.model.loss import Loss
from fencerow.core.model.state import State
from fencerow.core.store import store

log = logging.getLogger("fencerow.worker.keeper")

# Rows of workers that ended are removed an hour later: after a longer silence a missing row tells nothing.
JUDGED_S = 3000.0
LOSSES_MAX = 10
ASK_AGAIN_S = 600.0


class Past:
    """The memory of one worker process. Used in the keeper's thread, but for `confirmed` and `doubted`."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._watches = engine.dialect == "postgres"
        self._server: str | None = None
        self._ask_from = 0.0
        self._news = False
        self._losses: list[Loss] = []
        self._renewed_us: int | None = None
        self._confirmed_at = 0.0
        self._outcome: tuple[str, int, float] | None = None  # id, attempt, and when it was confirmed

    def told(self) -> dict[str, object]:
        """What the worker's row tells of it."""
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
