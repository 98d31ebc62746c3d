"""I4, from the history alone: is there an order of a job's acts in which each was legal when it happened?

The acts of one job overlap in time, and those without an answer may have happened or not. A job's history
is legal if one order fits the clocks (what was over before another began comes before it) in which
every act finds the job in a state that permits it. All orders are tried, most jobs have one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from fencerow.core.model.state import FINAL, State
from fencerow_proof.history.acts import NEVER, Act
from fencerow_proof.history.line import Kind
from fencerow_proof.history.lives import (
    CLAIMS,
    ENDED_BY_AGE,
    FENCED,
    REMOVALS,
    Life,
    Unseen,
    gates_of,
)
from fencerow_proof.history.report import Report

VISITS_MAX = 20_000
MOVES = frozenset(
    {
        "submit",
        "hand_over",
        "take_turns_back",
        "fall_back",
        "change",
        "cancel_idle",
        "ask_cancel",
        "revive",
        "suspend_new",
        "hold_flow_jobs",
        "wake",
        *ENDED_BY_AGE,
        *CLAIMS,
        *FENCED,
        *REMOVALS,
    }
)
ENDS = {"succeed": State.SUCCEEDED, "fail": State.FAILED, "stop": State.CANCELLED}
BACK = (State.QUEUED, State.WAITING)  # where an attempt leaves a job that shall run again
ROBBED = (*BACK, State.FAILED, State.CANCELLED)


@dataclass(frozen=True, slots=True)
class Standing:
    """Where a job stands between two acts. `state` is None before its submit and after its removal."""

    state: State | None = None
    attempt: int = 0
    holder: str | None = None
    asked: bool = False


@dataclass(frozen=True, slots=True)
class _Free:
    """A move that nobody reported for this job but that an undecided act can have made, from this instant on."""

    act: Act
    verb: str
    numbers: frozenset[int] = frozenset()  # of a claim: the attempts that no answered claim made


def check_order(report: Report, life: Life, hidden: Unseen) -> None:
    """Look for an order; a job without one broke a rule, whichever it was."""
    acts = [act for act in life.acts if act.verb in MOVES and act.possible]
    if not acts:
        return
    report.looked["I4"] += 1
    free = _free_moves(life, hidden)
    if not _submitted(acts):
        acts = [_earlier(acts[0]), *acts]
    found = _search(acts, free, report.history.slack_us)
    if found is None:
        report.undecided += 1
    elif not found:
        invariant = "I8" if life.all("cancel_idle") else "I4"
        what = "no order of these acts is legal"
        report.add(invariant, what, life.job, [act for act in acts if act.lines != (0, 0)])


def _search(acts: list[Act], free: list[_Free], slack_us: int) -> bool | None:
    """Whether an order exists; None when there were too many to try."""
    everything = sum(1 << index for index, act in enumerate(acts) if act.happened)
    stack: list[tuple[int, Standing]] = [(0, Standing())]
    seen: set[tuple[int, Standing]] = set(stack)
    while stack:
        done, standing = stack.pop()
        if done & everything == everything:
            return True
        if len(seen) > VISITS_MAX:
            return None
        until_us = _first_end(acts, done) + slack_us
        for following in _next(acts, free, done, standing, until_us):
            if following not in seen:
                seen.add(following)
                stack.append(following)
    return False


def _first_end(acts: list[Act], done: int) -> int:
    """Nothing that began after this may come next: something else was over before it."""
    return min(
        (act.end_us for index, act in enumerate(acts) if not done >> index & 1 and act.happened),
        default=NEVER,
    )


def _next(
    acts: list[Act], free: list[_Free], done: int, standing: Standing, until_us: int
) -> list[tuple[int, Standing]]:
    found: list[tuple[int, Standing]] = []
    for index, act in enumerate(acts):
        if act.start_us > until_us:
            break  # they are sorted
        if not done >> index & 1:
            found += [(done | 1 << index, after) for after in outcomes(act, standing)]
    for move in free:
        if move.act.start_us <= until_us:
            found += [(done, after) for after in _freely(move, standing)]
    return found


def outcomes(act: Act, now: Standing) -> list[Standing]:
    """Where an act can lead from here; nowhere if it is not legal here."""
    match act.verb:
        case "submit":
            return _submit(act, now)
        case "claim":
            follows = now.state is State.QUEUED and act.attempt in (None, now.attempt + 1)
            return [Standing(State.RUNNING, now.attempt + 1, act.holder)] if follows else []
        case "change":
            return _change(act, now)
        case "cancel_idle":
            idle = now.state in (State.QUEUED, State.WAITING)
            return [replace(now, state=State.CANCELLED, asked=True)] if idle else []
        case "ask_cancel":
            return [replace(now, asked=True)] if now.state is State.RUNNING else []
        case "expire" | "disown":
            return [replace(now, state=State.FAILED)] if now.state in (State.QUEUED, State.WAITING) else []
        case "hand_over":
            return [replace(now, state=State.QUEUED)] if now.state is State.WAITING else []
        case "wake":
            return [replace(now, state=state) for state in _back(act)] if now.state is State.WAITING else []
        case "fall_back":
            return [now] if now.state in BACK else []
        case "take_turns_back":
            return [replace(now, state=State.WAITING)] if now.state in BACK else []
        case "suspend_new":
            return [replace(now, state=State.WAITING)] if now.state in BACK and now.attempt == 0 else []
        case "hold_flow_jobs":
            return [replace(now, state=State.WAITING)] if now.state in BACK else []
        case "revive":
            return [Standing(state, now.attempt) for state in _back(act)] if now.state in FINAL else []
        case "reclaim" | "time_out" | "crash":
            return _taken(act, now)
        case _:
            if act.verb in REMOVALS:
                return [Standing()] if now.state in FINAL else []
            return _fenced(act, now)


def _submit(act: Act, now: Standing) -> list[Standing]:
    """Inserted: it was nowhere. Not inserted: it was there. Undecided: either, or nothing at all."""
    if act.maybe or act.new:
        return [Standing(state) for state in _stored(act)] if now.state is None else []
    return [now] if now.state is not None else []


def _stored(act: Act) -> tuple[State, ...]:
    """Where a new job is; one with a key of which that is not told has its turn from its submit on or waits for it."""
    if act.state is not None:
        return (State(act.state),)
    return BACK if act.exclusive is not None else (State.QUEUED,)


def _back(act: Act) -> list[State]:
    """Into its queue, or to its gate; an undecided act may have done either."""
    return [state for state in BACK if act.state is None or act.state == state.value]


def _change(act: Act, now: Standing) -> list[Standing]:
    """It stays where it is; or has a turn, is put off, and waits for its turn again."""
    if now.state not in (State.QUEUED, State.WAITING):
        return []
    return [
        replace(now, state=state)
        for state in {now.state, State.WAITING}
        if act.state is None or act.state == state.value
    ]


def _fenced(act: Act, now: Standing) -> list[Standing]:
    if now.state is not State.RUNNING or act.attempt != now.attempt:
        return []
    if act.holder is not None and now.holder is not None and act.holder != now.holder:
        return []
    match act.verb:
        case "stop":
            return [replace(now, state=State.CANCELLED)] if now.asked else []
        case "requeue":
            return [] if now.asked else [Standing(state, now.attempt) for state in _back(act)]
        case "suspend":
            return [] if now.asked else [Standing(State.WAITING, now.attempt)]
        case "succeed" | "fail":
            return [replace(now, state=ENDS[act.verb])]
        case _:
            return [now]


def _taken(act: Act, now: Standing) -> list[Standing]:
    """Taken from its holder: it was running in that attempt, and is cancelled exactly if that was asked."""
    if now.state is not State.RUNNING or act.attempt != now.attempt:
        return []
    if act.holder is not None and now.holder is not None and act.holder != now.holder:
        return []
    return [
        Standing(became, now.attempt, asked=became in FINAL and now.asked)
        for became in ((State(act.state),) if act.state is not None else BACK)
        if (became is State.CANCELLED) == now.asked
    ]


# --- what nobody reported ----------------------------------------------------------------------------


def _free_moves(life: Life, hidden: Unseen) -> list[_Free]:
    """Undecided acts that name no job, as far as they can matter to this one."""
    found: list[_Free] = []
    unclaimed = _unclaimed(life)
    if any(number <= life.highest for number in unclaimed):
        found += [_Free(act, "claim", unclaimed) for act in hidden.claims.values()]
    holders = {attempt.holder for attempt in life.attempts.values()}
    found += [_Free(act, act.verb) for act in hidden.takings(holders)]
    found += [
        _Free(act, verb)
        for act, verb in (
            (hidden.expiry, "expire"),
            (hidden.removal, "delete"),
        )
        if act
    ]
    found += [_Free(act, "hand_over") for act in hidden.hand_overs_at(gates_of(life.acts))]
    return found


def _unclaimed(life: Life) -> frozenset[int]:
    """The attempts up to the highest, and one more, that only an unanswered claim can have made."""
    return frozenset(
        number
        for number in range(1, life.highest + 2)
        if number not in life.attempts or not life.attempts[number].claims
    )


def _freely(move: _Free, now: Standing) -> list[Standing]:
    holder = move.act.holder
    match move.verb:
        case "claim":
            follows = now.state is State.QUEUED and now.attempt + 1 in move.numbers
            return [Standing(State.RUNNING, now.attempt + 1, holder)] if follows else []
        case "reclaim" | "time_out":
            if now.state is not State.RUNNING or holder not in (None, now.holder):
                return []
            return [Standing(became, now.attempt) for became in ROBBED if not now.asked] or [
                Standing(State.CANCELLED, now.attempt, asked=True)
            ]
        case "expire":
            return [replace(now, state=State.FAILED)] if now.state in (State.QUEUED, State.WAITING) else []
        case "hand_over":
            return [replace(now, state=State.QUEUED)] if now.state is State.WAITING else []
        case _:
            return [Standing()] if now.state in FINAL else []


def _submitted(acts: list[Act]) -> bool:
    return any(act.verb == "submit" for act in acts)


def _earlier(first: Act) -> Act:
    """A job that the history knows without its submit was there before."""
    return Act("submit", Kind.OK, 0, 0, first.op, (0, 0), first.job, new=True)
