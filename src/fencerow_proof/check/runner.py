"""One of two runs that go side by side: what it does next, and which tables that touches."""

from __future__ import annotations

from fencerow.core.errors import Busy
from fencerow_proof.check.findings import shown
from fencerow_proof.check.ground import Ground, succeeded
from fencerow_proof.check.kinds import Action, Kind
from fencerow_proof.check.process import Process
from fencerow_proof.explorer.footprint import Footprint

NOTHING = Footprint()


def all_of(actions: list[Action]) -> Footprint:
    """All that these actions touch."""
    return Footprint(
        frozenset(table for action in actions for table in action.reads),
        frozenset(table for action in actions for table in action.writes),
    )


class Runner:
    """A run with what belongs to it in the database: its claim before, its success after.

    Without a claim it is the next attempt of the other's job: it begins when the other is declared dead, which
    may be at any moment, and then the other goes on as one that was thought dead.
    """

    def __init__(self, name: str, ground: Ground, holder: str, process: Process | None, job: int = 0) -> None:
        self.name = name
        self.holder = holder
        self.process = process
        self.claimed = ground.claimed[job] if process is not None else None
        self.is_over = False
        self.releases = 0  # how often it gave back what it had locked
        self.story: list[str] = []
        self._ground = ground
        self._jobs = Footprint(frozenset(), frozenset((ground.jobs_table,)))
        self._open: dict[int, set[str]] = {}  # by session: what its transaction has written
        self._last: tuple[str, str] | None = None
        self._waits = False  # for what belongs to it in the database
        self._waited_for = -1  # the other's releases when it met the locked file

    @property
    def next(self) -> Footprint:
        """What its next move touches."""
        process = self.process
        if process is None or (process.ended is not None and process.ended.outcome == "Succeeded"):
            return self._jobs  # it claims, or stores its success
        if process.is_over:
            return NOTHING
        action = process.pending
        if action is None:
            return NOTHING
        if action.kind in (Kind.COMMIT, Kind.ROLLBACK):
            return Footprint(frozenset(), frozenset(self._open.get(action.session, ())))
        if action.driver == "sqlite3" and self._open.get(action.session):
            return NOTHING  # it has the one writer's lock already: others see all of it at its end
        return Footprint(frozenset(action.reads), frozenset(action.writes))

    def may_go(self, other: Runner) -> bool:
        """Whether a move of it can get anywhere now."""
        if self.is_over:
            return False
        if self._waits or (self.process is not None and self.process.busy):
            return other.is_over or other.releases > self._waited_for
        return self.process is None or self.process.is_over or self.process.pending is not None

    @property
    def repeats(self) -> bool:
        """Whether its next action is the last one again: it asks until somebody else has moved."""
        action = self.process.pending if self.process else None
        return action is not None and (action.text, action.place) == self._last

    def moved_on(self) -> None:
        """Somebody else has moved: asking again may get another answer."""
        self._last = None

    def go(self, other: Runner) -> str:
        """Make its next move; returns it as a line."""
        self._waits = False
        if self.process is None or self.process.is_over:
            try:
                return self._start(other) if self.process is None else self._finish()
            except Busy:
                self._waits, self._waited_for = True, other.releases
                return f"{self.name}: waits for the job's row"
        action = self.process.pending
        if self.process.busy or action is None:
            self._waited_for = other.releases
            self.process.go()
            return f"{self.name}: tries again"
        self._waited_for = other.releases
        self._last = (action.text, action.place)
        self._account(action)
        self.process.go()
        return f"{self.name}: {shown(action)}"

    def _account(self, action: Action) -> None:
        if action.kind in (Kind.COMMIT, Kind.ROLLBACK):
            self._open.pop(action.session, None)
            self.releases += 1
            return
        if action.kind is Kind.BEGIN:
            self._open.setdefault(action.session, set()).update(action.writes)
        elif action.session in self._open:
            self._open[action.session].update(action.writes)
        else:
            self.releases += 1  # in a transaction of its own

    def _start(self, other: Runner) -> str:
        found = self._ground.again(other.holder, self.holder)
        if found is None:
            self.is_over = True
            return f"{self.name}: finds the job done"
        self.process, self.claimed = found
        return f"{self.name}: claims the job, its holder is thought dead"

    def _finish(self) -> str:
        assert self.process is not None and self.claimed is not None
        self._ground.bury(self.process)
        stored = succeeded(self.process) and self._ground.acknowledge(self.process, self.claimed, self.holder)
        self.is_over = True
        self.releases += 1
        if not succeeded(self.process):
            ended = self.process.ended
            return f"{self.name}: fails: {ended.error if ended else 'its process died'}"
        stored = stored or (self.process.ended is not None and self.process.ended.outcome == "Committed")
        return f"{self.name}: succeeds" if stored else f"{self.name}: its success comes too late"
