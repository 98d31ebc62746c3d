"""Everything that the trials of one check stand on: the scratch database, the processes, the clean run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from fencerow.core.model.job import Claimed
from fencerow.testing.clock import clock_of
from fencerow_proof.check.desk import HOLDERS, JOBS, Desk
from fencerow_proof.check.director import Director
from fencerow_proof.check.kinds import Action, Kind
from fencerow_proof.check.options import Options
from fencerow_proof.check.process import Process
from fencerow_proof.check.scratch import Scratch
from fencerow_proof.check.state import Comparison, Difference, State
from fencerow_proof.check.wire import Loaded
from fencerow_proof.errors import CheckNeedsMore

SUCCESSES = ("Succeeded", "Committed")
Calls = Counter[tuple[str, str | None]]


@dataclass(frozen=True)
class Outcome:
    """What a trial left: the user's tables, and what other systems were asked to do."""

    state: State
    calls: Calls


@dataclass
class Clean:
    """One run without disturbance: what every trial is compared with."""

    trace: list[Action]
    outcome: Outcome
    seen: list[Action] = field(default_factory=list)


class Ground:
    """The scratch database and the processes of one check."""

    def __init__(
        self,
        options: Options,
        loaded: Loaded,
        scratch: Scratch,
        director: Director,
        say: Callable[[str], None],
        jobs: int = 1,
    ) -> None:
        self.options = options
        self.loaded = loaded
        self.scratch = scratch
        self.director = director
        self.say = say
        self.comparison = Comparison((*options.ignored, *loaded.counting))
        self.runs = 0
        self._passed_s = 0.0  # by the copy's clock
        self._desk = Desk(loaded)
        self._ids = JOBS[:jobs]
        self.claimed: list[Claimed] = []

    @property
    def jobs_table(self) -> str:
        """The name that our table of jobs has in statements."""
        loaded = self.loaded
        return f"{loaded.table_prefix}jobs" if loaded.dialect == "sqlite" else f"{loaded.schema}.jobs"

    def set_up(self) -> None:
        """Make the pattern: all tables, the job submitted and claimed for its first attempt."""
        self.director.prepare(self.scratch, list(self._ids))
        engine = self.scratch.engine()
        self._desk.open(engine)
        self.claimed = self._desk.claim(engine, HOLDERS[0], len(self._ids))
        self.scratch.keep()

    def fresh(self) -> None:
        """A new copy of the pattern, at the time at which it was made."""
        self.scratch.fresh()
        self._passed_s = 0.0

    def pass_time(self, seconds: float) -> None:
        """Let so much time pass by the copy's clock: the job put itself back for so long."""
        self._passed_s += seconds
        self.comparison.passed_s = max(self.comparison.passed_s, self._passed_s)
        clock = clock_of(self.scratch.engine())
        clock.close()
        clock.advance(self._passed_s)

    def first(self, number: int = 0) -> Process:
        """A first attempt, before its first action."""
        self.runs += 1
        return self._start(self.claimed[number], HOLDERS[0])

    def again(self, dead: str, holder: str) -> tuple[Process, Claimed] | None:
        """The next attempt after the holder's death; None when nothing is left to do.

        Raises:
            Busy: somebody's open transaction holds the job's row, or the SQLite file.
        """
        claimed = self._desk.claim_again(self.scratch.engine(), dead, holder)
        if claimed is None:
            return None
        self.runs += 1
        return self._start(claimed, holder), claimed

    def _start(self, claimed: Claimed, holder: str) -> Process:
        return self.director.start(self.scratch, claimed, holder, self._passed_s)

    def acknowledge(self, process: Process, claimed: Claimed, holder: str) -> bool:
        """Store a success as the worker would; false when there is nothing to store or it came too late.

        Raises:
            Busy: as in `again`.
        """
        if process.ended is None or process.ended.outcome != "Succeeded":
            return False
        return self._desk.acknowledge(self.scratch.engine(), claimed, holder, process.ended)

    def bury(self, process: Process) -> None:
        """End a process, and wait until the database has undone what it left open."""
        process.kill()
        if process.backends:
            self.scratch.settle(process.backends)

    def outcome(self, processes: Iterable[Process]) -> Outcome:
        """What is left when all of these are over."""
        reader = self.scratch.reader()
        return Outcome(reader.state(self._ids), calls_of(processes))

    def differences(self, wanted: Outcome, found: Outcome) -> list[Difference]:
        return self.comparison.differences(wanted.state, found.state)

    def clean(self) -> Clean:
        """Run once without disturbance.

        Raises:
            CheckNeedsMore: even so the handler does not succeed.
        """
        self.fresh()
        process = self.first()
        self.director.run(self.scratch, process)
        self._refuse_failure(process)
        self.bury(process)
        self.acknowledge(process, self.claimed[0], HOLDERS[0])
        return Clean(process.trace, self.outcome([process]), process.seen)

    def _refuse_failure(self, process: Process) -> None:
        ended = process.ended
        socket = next((action for action in process.seen if action.kind is Kind.SOCKET), None)
        if socket is not None:
            return  # it is reported as what it is
        if ended is None:
            raise CheckNeedsMore(
                "the handler's process died in the clean run",
                self.director.log_tail(),
                "run the handler by itself and look at the error",
            )
        if ended.outcome not in SUCCESSES:
            raise CheckNeedsMore(
                f"the handler does not succeed on a fresh database: {ended.error}",
                f"raised at {ended.place}" if ended.place else f"it ended as {ended.outcome}",
                "make its tables and rows in --setup, and declare its calls of other systems with --outside",
            )


def calls_of(processes: Iterable[Process]) -> Calls:
    """What other systems did: each call without a key, and each key once."""
    found: Calls = Counter()
    for process in processes:
        for action in process.trace:
            if action.kind is not Kind.CALL or action.number in process.failed:
                continue
            if action.key is None or (action.text, action.key) not in found:
                found[action.text, action.key] += 1
    return found


def back_in_s(process: Process) -> float | None:
    """For how long the handler put its job back by itself, if it did: that is no failure."""
    return None if process.ended is None else process.ended.back_in_s


def succeeded(process: Process) -> bool:
    """Whether the handler ended well."""
    return process.ended is not None and process.ended.outcome in SUCCESSES
