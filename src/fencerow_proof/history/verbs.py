"""What each writing statement of the store asks for and what its rows say: from statements to history lines.

A statement that is not in `VERBS` is not recorded: reads, and what the invariants do not speak of.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import msgspec

import fencerow_proof.history.asking as asking
from fencerow.core.model.job import Claimed
from fencerow.core.model.state import State
from fencerow.core.store.claims import decoded
from fencerow.db.run import Row, Rows
from fencerow_proof.history.asking import Params
from fencerow_proof.history.line import REFUSED, Kind
from fencerow_proof.history.recorder import Fact

End = tuple[Kind, Fact]


@dataclass(frozen=True, slots=True)
class Verb:
    """`asked` are the facts before the statement is sent, `answered` the ends that its rows tell of.

    `told_as`: the verb of the lines, where several statements say the same. A fact may have a verb of its own.
    """

    asked: Callable[[Params], list[Fact]]
    answered: Callable[[Params, Rows], list[End]]
    told_as: str | None = None


def _moved(
    asked: Callable[[Params], list[Fact]], state: State | None, params: Params, rows: Rows
) -> list[End]:
    """The rows' ids did; what was asked for besides was refused."""
    ids = {str(row[0]) for row in rows}
    became: Fact = {} if state is None else {"state": state.value}
    return [
        (Kind.OK, fact | became) if fact["job"] in ids else (Kind.FAIL, fact | {"code": REFUSED})
        for fact in asked(params)
    ]


def _succeeded(params: Params, rows: Rows) -> list[End]:
    """The first row of one that stands alone has whom these ends queued, in its fourth column."""
    told = str(rows[0][3]) if rows and len(rows[0]) > 3 and rows[0][3] is not None else "[]"
    passed: list[list[object]] = msgspec.json.decode(told)
    return _moved(asking.outcomes, State.SUCCEEDED, params, rows) + [
        (Kind.OK, fact | more)
        for fact in asking.passing_on(params)
        for more in [{"job": each[0], "state": State.QUEUED.value} for each in passed] or [{}]
    ]


def _first_ends(params: Params, rows: Rows) -> list[End]:
    """One row has the ids of all as a list, and in its fourth column whom these ends queued."""
    ((ids, *told),) = rows
    return _succeeded(params, [(each, *told) for each in str(ids or "").split(",")])


def _requeued(asked: Callable[[Params], list[Fact]], params: Params, rows: Rows) -> list[End]:
    """Each is queued again, or waits for its turn again, as the fifth column says."""
    waits = {str(row[0]) for row in rows if row[4]}
    return [
        (kind, fact | {"state": State.WAITING.value} if fact["job"] in waits else fact)
        for kind, fact in _moved(asked, State.QUEUED, params, rows)
    ]


def _changed(asked: Callable[[Params], list[Fact]], params: Params, rows: Rows) -> list[End]:
    """Each is where it was, or waits for its turn again; what is not among the rows was refused."""
    states = {str(row[0]): str(row[1]) for row in rows}
    return [
        (Kind.OK, fact | {"state": states[fact["job"]]})
        if fact["job"] in states
        else (Kind.FAIL, fact | {"code": REFUSED})
        for fact in asked(params)
    ]


def _crashed(params: Params, rows: Rows) -> list[End]:
    """Each went where its budget allowed; what is not among the rows was refused."""
    states = {str(row[0]): str(row[1]) for row in rows}
    return [
        (Kind.OK, fact | {"state": states[fact["job"]]})
        if fact["job"] in states
        else (Kind.FAIL, fact | {"code": REFUSED})
        for fact in asking.outcomes(params)
    ]


def _whether(asked: Callable[[Params], list[Fact]], params: Params, rows: Rows) -> list[End]:
    """Any row at all says that it was done."""
    (fact,) = asked(params)
    return [(Kind.OK, fact) if rows else (Kind.FAIL, fact | {"code": REFUSED})]


def _found(name: Callable[[Row], Fact], _: Params, rows: Rows) -> list[End]:
    """What was done is known only from the rows."""
    return [(Kind.OK, name(row)) for row in rows] or [(Kind.OK, {})]


def _done(_: Params, __: Rows) -> list[End]:
    """It says nothing of itself, but that it was answered."""
    return [(Kind.OK, {})]


def _new(asked: Callable[[Params], list[Fact]], params: Params, _: Rows) -> list[End]:
    """Ids that nobody knows: what was answered is there."""
    return [(Kind.OK, fact | {"new": True}) for fact in asked(params)]


def _keyed(params: Params, rows: Rows) -> list[End]:
    """One new job, which has its turn or waits for it, as the first column says."""
    ((has_turn, *_),) = rows
    state = {"state": asking.stored_as(waits=not has_turn)}
    return [(kind, fact | state) for kind, fact in _new(asking.one_keyed, params, rows)]


def _inserted(params: Params, rows: Rows) -> list[End]:
    ids = {str(row[0]) for row in rows}
    return [(Kind.OK, fact | {"new": fact["job"] in ids}) for fact in asking.jobs(params)]


def _reserved(params: Params, rows: Rows) -> list[End]:
    """The keys that were free are ours; of the others the next statement tells the owner."""
    taken = {(str(row[0]), str(row[1])) for row in rows}
    return [
        (Kind.OK, fact | {"new": True})
        if (fact["scope"], fact["key"]) in taken
        else (Kind.FAIL, fact | {"code": REFUSED})
        for fact in asking.keys(params)
    ]


def _owned(_: Params, rows: Rows) -> list[End]:
    found = [
        {"scope": str(row[0]), "key": str(row[1]), "job": str(row[2]), "fingerprint": str(row[3])}
        for row in rows
        if not row[4]
    ]
    return [(Kind.OK, fact) for fact in found] or [(Kind.OK, {})]


def _claimed(params: Params, rows: Rows) -> list[End]:
    """One that waited at its gate was handed over first, in the same statement."""
    given, jobs = params["given"], decoded(rows)
    assert isinstance(given, list), "the ids"
    waited = set(given)
    handed = {"verb": "hand_over", "state": State.QUEUED.value}
    turned: list[End] = [(Kind.OK, {"job": job.id, **handed}) for job in jobs if job.id in waited]
    return [*turned, *_claims_of(params, jobs)] or [(Kind.OK, {"holder": params["holder"]})]


def _claims_of(params: Params, jobs: Sequence[Claimed]) -> list[End]:
    holder, queue = params["holder"], params["queue"]
    return [
        (
            Kind.OK,
            {
                "job": job.id,
                "attempt": job.attempt,
                "holder": holder,
                "queue": queue,
                "state": State.RUNNING.value,
                "suspect": job.suspect,
                **asking.labels(params),
            },
        )
        for job in jobs
    ]


def _asked_of(params: Params, rows: Rows) -> list[End]:
    holders = {str(row[0]): str(row[1]) for row in rows}
    return [
        (Kind.OK, fact | {"holder": holders[fact["job"]]})
        if fact["job"] in holders
        else (Kind.FAIL, fact | {"code": REFUSED})
        for fact in asking.ids(params)
    ]


def _as_job(state: State | None, row: Row) -> Fact:
    return {"job": str(row[0])} | ({} if state is None else {"state": state.value})


def _as_holder(row: Row) -> Fact:
    return {"holder": str(row[0])}


def _as_key(row: Row) -> Fact:
    return {"scope": str(row[0]), "key": str(row[1])}


def _as_taken(row: Row) -> Fact:
    """Of a reclaim or a time-out: id, state, queue, priority, run_at, attempt, and the lost holder if told."""
    fact: Fact = {"job": str(row[0]), "state": str(row[1]), "attempt": row[5]}
    if len(row) > 6 and row[6] is not None:
        fact["holder"] = str(row[6])
    return fact


def _nothing(_: Params) -> list[Fact]:
    return [{}]


def _each(asked: Callable[[Params], list[Fact]], state: State | None = None) -> Verb:
    return Verb(asked, partial(_moved, asked, state))


def _single(asked: Callable[[Params], list[Fact]]) -> Verb:
    return Verb(asked, partial(_whether, asked))


def _rows(name: Callable[[Row], Fact], asked: Callable[[Params], list[Fact]] = _nothing) -> Verb:
    return Verb(asked, partial(_found, name))


_PURGE = _rows(partial(_as_job, None))
_FENCE = ("holder", "attempt")

VERBS: dict[str, Verb] = {
    "submit": Verb(asking.jobs, partial(_new, asking.jobs)),
    "submit_one": Verb(asking.one_new, partial(_new, asking.one_new), "submit"),
    "submit_one_keyed": Verb(asking.one_keyed, _keyed, "submit"),
    "submit_alike": Verb(asking.alike, partial(_new, asking.alike), "submit"),
    "copy_jobs": Verb(asking.copied, partial(_new, asking.copied), "submit"),
    "copy_gated": Verb(asking.copied_gated, partial(_new, asking.copied_gated), "submit"),
    "resubmit": Verb(asking.jobs, _inserted, "submit"),
    "withdraw": _each(asking.ids),
    "reserve_keys": Verb(asking.keys, _reserved),
    "read_keys": Verb(_nothing, _owned),
    "drop_expired_keys": _rows(_as_key),
    "give_keys_back": _rows(_as_key),
    "purge_keys": _rows(_as_key),
    "give_turns": Verb(asking.ids, partial(_moved, asking.ids, State.QUEUED), "hand_over"),
    "give_alike": Verb(asking.look, partial(_found, partial(_as_job, State.QUEUED)), "hand_over"),
    "take_turns_back": _each(asking.ids, State.WAITING),
    "claim": Verb(asking.claim, _claimed),
    "fall_back": _rows(partial(_as_job, State.QUEUED)),
    "succeed": Verb(asking.successes, _succeeded),
    "succeed_first": Verb(asking.successes, _first_ends, "succeed"),
    "fail": _each(asking.outcomes, State.FAILED),
    "fail_in_place": _each(asking.outcomes, State.FAILED),
    "stop": _each(asking.outcomes, State.CANCELLED),
    "requeue": Verb(asking.outcomes, partial(_requeued, asking.outcomes)),
    "suspend": _each(asking.outcomes, State.WAITING),
    "suspend_new": _each(asking.ids, State.WAITING),
    "hold_flow_jobs": _each(asking.ids, State.WAITING),
    "wake": Verb(asking.ids, partial(_requeued, asking.ids)),
    "crash": Verb(asking.outcomes, _crashed),
    "archive": _each(asking.ids),
    "progress": _single(asking.one(*_FENCE)),
    "log": _single(asking.one(*_FENCE)),
    "note_alone": _single(asking.one(*_FENCE)),
    "change": Verb(asking.changing, partial(_changed, asking.changing)),
    "replace_jobs": Verb(asking.jobs, partial(_changed, asking.jobs), "change"),
    "cancel_idle": _each(asking.ids, State.CANCELLED),
    "ask_cancel": Verb(asking.ids, _asked_of),
    "expire": _rows(partial(_as_job, State.FAILED)),
    "disown": _rows(partial(_as_job, State.FAILED)),
    "revive": Verb(asking.ids, partial(_requeued, asking.ids)),
    "delete": _each(asking.ids),
    "purge_by_age": _PURGE,
    "purge_by_own_age": _PURGE,
    "purge_by_count": _PURGE,
    "purge_spent": _PURGE,
    "detach_period": Verb(_nothing, _done),
    "finalize_period": Verb(_nothing, _done),
    "drop_period": Verb(_nothing, _done),
    "reclaim": _rows(_as_taken, asking.holders),
    "time_out": _rows(_as_taken),
    "die": _rows(_as_holder),
    "die_ahead": _rows(_as_holder),
    "adopt": _rows(_as_holder),
    "register": _single(asking.registration),
    "renew": _single(asking.renewal),
    "order_worker": _single(asking.one("holder")),
    "retire": _single(asking.one("holder")),
}

# Reads that tell the database's clock on the way: where in their rows, in microseconds.
CLOCKS: dict[str, int] = {"clock": 0, "lanes": 3}
