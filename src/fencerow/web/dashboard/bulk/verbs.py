"""The verbs for many jobs: the same that the command has. For each: which states it fits, and what becomes of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from fencerow.core.errors import InvalidInput
from fencerow.core.model.state import FINAL, LIVE, State
from fencerow.operators.job_change import job_change
from fencerow.operators.many import CancelMany, ChangeMany, DeleteMany, ManyMove, ReviveMany

IDLE = LIVE - {State.RUNNING}
Making = Callable[
    [str | None, str, str, int], ManyMove
]  # of who asks, why, the value, and when the preview was


@dataclass(frozen=True, slots=True)
class BulkVerb:
    """`title` asks for it and `done` is its button.

    `fits`: states in which a job is moved; `default`: those that a search without a state means. `value`: what it needs
    besides, and `hint` says how that is written. `fate`: what becomes of a job in a state that fits, and `unfit` why
    the others stay.
    """

    name: str
    title: str
    done: str
    fits: frozenset[State]
    default: frozenset[State]
    move: Making
    fate: Callable[[State], str]
    unfit: str
    value: str = ""
    hint: str = ""


def _ended(state: State) -> str:
    return "asked to stop by their workers" if state is State.RUNNING else "cancelled at once"


def _always(text: str) -> Callable[[State], str]:
    return lambda _state: text


def _to_priority(actor: str | None, reason: str, value: str, _at_us: int) -> ManyMove:
    try:
        wanted = int(value)
    except ValueError:
        raise InvalidInput(
            f"the priority is {ascii(value)[:40]}", "a whole number is expected", "correct it"
        ) from None
    return ChangeMany(actor, reason, job_change(priority=wanted))


def _to_queue(actor: str | None, reason: str, value: str, _at_us: int) -> ManyMove:
    return ChangeMany(actor, reason, job_change(queue=value))


_RUNS = "what runs or has ended cannot be changed"
_VERBS = (
    BulkVerb(
        "cancel", "Cancel jobs", "Cancel them", LIVE, LIVE,
        lambda actor, reason, *_: CancelMany(actor, reason), _ended, "they have ended",
    ),
    BulkVerb(
        "cancel-idle", "Cancel jobs that nobody runs", "Cancel them", IDLE, IDLE,
        lambda actor, reason, *_: CancelMany(actor, reason, only_queued=True),
        _always("cancelled at once"), "they run, or have ended",
    ),
    BulkVerb(
        "revive", "Revive jobs", "Revive them", FINAL, frozenset({State.FAILED}),
        lambda actor, reason, _, at_us: ReviveMany(actor, reason, at_us),
        _always("queued again, their budgets begin anew"), "only jobs that have ended are revived",
    ),
    BulkVerb(
        "run-now", "Run jobs now", "Make them due", IDLE, IDLE,
        lambda actor, reason, *_: ChangeMany(actor, reason, job_change(run_now=True)),
        _always("due at once; what is due already keeps its place"), _RUNS,
    ),
    BulkVerb(
        "priority", "Change the priority of jobs", "Change it", IDLE, IDLE, _to_priority,
        _always("get this priority"), _RUNS, "Priority", "a whole number; the highest runs first",
    ),
    BulkVerb(
        "queue", "Move jobs to another queue", "Move them", IDLE, IDLE, _to_queue,
        _always("moved to this queue"), _RUNS, "Queue", "its name",
    ),
    BulkVerb(
        "delete", "Delete jobs", "Delete them", FINAL, FINAL, lambda *_: DeleteMany(),
        _always("removed for good, with timeline and lines"), "only jobs that have ended are deleted",
    ),
)  # fmt: skip
VERBS: Mapping[str, BulkVerb] = MappingProxyType({each.name: each for each in _VERBS})


def verb_of(name: str) -> BulkVerb:
    """The verb of this name.

    Raises:
        InvalidInput: there is none.
    """
    if name not in VERBS:
        raise InvalidInput(
            f"there is no bulk action {ascii(name)[:40]}",
            f"there are {', '.join(VERBS)}",
            "choose one of these",
        )
    return VERBS[name]
