"""The one table of moves between the states of a job, and of a worker.

No statement is made from it: the guards in the SQL name the same states. What says or shows what a job may become is
drawn from here. Histories are held against it, docs/life-of-a-job.md is printed from it, and tests/core/store plays
every (state, move) pair on both engines: a legal one changes exactly one job, an illegal one none.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from fencerow.core.model.state import State, WorkerState


class JobMove(StrEnum):
    """A change of state. Each is one guarded statement with exactly one winner."""

    ADMIT = "admit"
    YIELD = "yield"
    CLAIM = "claim"
    TAKE = "take"
    FALL_BACK = "fall_back"
    RENEW = "renew"
    SUCCEED = "succeed"
    RETRY = "retry"
    RELEASE = "release"
    SUSPEND = "suspend"
    WAKE = "wake"
    FAIL = "fail"
    STOP = "stop"
    CRASH = "crash"
    RECLAIM = "reclaim"
    TIMEOUT = "timeout"
    CHANGE = "change"
    CANCEL = "cancel"
    EXPIRE = "expire"
    DISOWN = "disown"
    REVIVE = "revive"
    DELETE = "delete"


@dataclass(frozen=True, slots=True)
class Rule:
    """From which states a move is legal, to which state it leads, and what else must hold in the same statement.

    `otherwise` lists the states it leads to instead when the guard's exception applies.
    A target of None means that the row is gone. With `stays` it remains in the state that it is in.
    """

    sources: frozenset[State]
    target: State | None
    guard: str
    otherwise: tuple[State, ...] = ()
    fenced: bool = False
    stays: bool = False

    def leads(self, source: State) -> State | None:
        """To which state it leads from this one."""
        return source if self.stays else self.target


def rule(
    sources: str,
    target: State | None,
    guard: str,
    *otherwise: State,
    fenced: bool = False,
    stays: bool = False,
) -> Rule:
    """One line of the table; `sources` are state names separated by spaces."""
    return Rule(frozenset(State(name) for name in sources.split()), target, guard, otherwise, fenced, stays)


FENCE = "holder and attempt match"

RULES: dict[JobMove, Rule] = {
    JobMove.ADMIT: rule(
        "waiting",
        State.QUEUED,
        "it is due, and a turn is free at its gate; the gate's row is locked and counted",
    ),
    JobMove.YIELD: rule(
        "queued",
        State.WAITING,
        "it has a turn that a job of another queue waits for, and its queue is paused, or nobody claimed it for "
        "turn_claim_s; a strict job keeps what it has started",
    ),
    JobMove.CLAIM: rule(
        "queued",
        State.RUNNING,
        "it stands in a lane that the worker may take from; run_at <= now; queue not paused; holder alive; "
        "attempt becomes attempt + 1",
    ),
    JobMove.TAKE: rule(
        "waiting",
        State.RUNNING,
        "it is due, and a turn is free at its gate, as where it is admitted; it stands in the lane of anybody; queue "
        "not paused; holder alive; attempt becomes attempt + 1",
    ),
    JobMove.FALL_BACK: rule(
        "queued",
        State.QUEUED,
        "it stands in the lane of a label, and affinity_wait_s have passed since it was due; for one attempt it stands "
        "in that of anybody",
    ),
    JobMove.RENEW: rule(
        "running", State.RUNNING, "the holder's own row is alive; nothing of the job changes"
    ),
    JobMove.SUCCEED: rule("running", State.SUCCEEDED, FENCE, fenced=True),
    JobMove.RETRY: rule(
        "running",
        State.QUEUED,
        f"{FENCE}; failures + 1; run_at moves on; cancelled instead if a cancel was asked, "
        "waiting if it gives its turn up",
        State.CANCELLED,
        State.WAITING,
        fenced=True,
    ),
    JobMove.RELEASE: rule(
        "running",
        State.QUEUED,
        f"{FENCE}; counts as no failure; cancelled instead if a cancel was asked, "
        "waiting if it comes back later and gives its turn up",
        State.CANCELLED,
        State.WAITING,
        fenced=True,
    ),
    JobMove.SUSPEND: rule(
        "running",
        State.WAITING,
        f"{FENCE}; waits for something that a wing knows, at no gate; cancelled instead if a cancel was asked",
        State.CANCELLED,
        fenced=True,
    ),
    JobMove.WAKE: rule(
        "waiting",
        State.QUEUED,
        "it is suspended, and what it waited for has come; waiting instead, at its gate, if it needs a turn",
        State.WAITING,
    ),
    JobMove.FAIL: rule("running", State.FAILED, f"{FENCE}; failures + 1", fenced=True),
    JobMove.STOP: rule("running", State.CANCELLED, f"{FENCE}; a cancel was asked", fenced=True),
    JobMove.CRASH: rule(
        "running",
        State.QUEUED,
        f"{FENCE}; its own child process died; it becomes suspect, crashes + 1; "
        "cancelled instead if a cancel was asked, failed when the crash budget is spent, "
        "waiting if it gives its turn up",
        State.CANCELLED,
        State.FAILED,
        State.WAITING,
        fenced=True,
    ),
    JobMove.RECLAIM: rule(
        "running",
        State.QUEUED,
        "its holder is dead, named by value; a job that may have started is suspect, and crashes + 1 if it ran alone; "
        "cancelled instead if a cancel was asked, failed when the crash budget is spent",
        State.CANCELLED,
        State.FAILED,
    ),
    JobMove.TIMEOUT: rule(
        "running",
        State.QUEUED,
        "its living holder calls this attempt overdue, by its own clock; failures + 1 if it had started; "
        "cancelled instead if a cancel was asked, failed when the failure budget is spent, "
        "waiting if it had started and gives its turn up",
        State.CANCELLED,
        State.FAILED,
        State.WAITING,
    ),
    JobMove.CHANGE: rule(
        "waiting queued",
        State.QUEUED,
        "nobody runs it; when it is due, its priority, its queue or its arguments change; "
        "waiting instead if it has a turn and is put off, or needs other turns; queued if it needs none any more",
        State.WAITING,
        State.QUEUED,
        stays=True,
    ),
    JobMove.CANCEL: rule(
        "waiting queued", State.CANCELLED, "nothing runs; a running job is asked, not moved"
    ),
    JobMove.EXPIRE: rule("waiting queued", State.FAILED, "expires_at <= now"),
    JobMove.DISOWN: rule(
        "queued",
        State.FAILED,
        "due for unknown_max_s, and no worker that was alive since then knows its name",
    ),
    JobMove.REVIVE: rule(
        "succeeded failed cancelled",
        State.QUEUED,
        "a person asked; its key is free or its own; budgets are full again, attempt goes on; "
        "waiting instead if it needs a turn",
        State.WAITING,
    ),
    JobMove.DELETE: rule("succeeded failed cancelled", None, "a person or retention asked"),
}


class WorkerMove(StrEnum):
    """A change of a worker's row. The lease of all its jobs hangs on it."""

    REGISTER = "register"
    RENEW = "renew"
    RETIRE = "retire"
    DIE = "die"


@dataclass(frozen=True, slots=True)
class WorkerRule:
    """From which state (None: no row yet) a worker's move is legal, and where it leads."""

    source: WorkerState | None
    target: WorkerState
    guard: str


WORKER_RULES: dict[WorkerMove, WorkerRule] = {
    WorkerMove.REGISTER: WorkerRule(None, WorkerState.ALIVE, "a fresh id, never used before"),
    WorkerMove.RENEW: WorkerRule(WorkerState.ALIVE, WorkerState.ALIVE, "lease_until moves on"),
    WorkerMove.RETIRE: WorkerRule(WorkerState.ALIVE, WorkerState.RETIRED, "it released what it held"),
    WorkerMove.DIE: WorkerRule(
        WorkerState.ALIVE,
        WorkerState.DEAD,
        "lease_until < now, said by a worker that is within its own lease",
    ),
}


def legal(move: JobMove, state: State) -> bool:
    """Whether the table permits `move` from `state`."""
    return state in RULES[move].sources
