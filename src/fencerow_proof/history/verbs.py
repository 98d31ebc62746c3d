"""What each writing statement of the store asks for and what its rows say: from statements to history lines.

A statement that is not in `VERBS` is not recorded: reads, and what the invariants do not speak of.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import msgspec

from fencerow.core.db.run import Param, Row, Rows
from fencerow.core.model.lane import label_of
from fencerow.core.model.state import State
from fencerow.core.model.wanted import Stated
from fencerow.core.store.attempts import decoded
from fencerow_proof.history.line import REFUSED, Kind
from fencerow_proof.history.recorder import Fact

ESCAPED = re.compile(r"\\(.)")
CONTROLS = {"n": "\n", "t": "\t", "r": "\r"}
Params = Mapping[str, Param]
End = tuple[Kind, Fact]


@dataclass(frozen=True, slots=True)
class Verb:
    """`asked` are the facts before the statement is sent, `answered` the ends that its rows tell of.

    `told_as`: the verb of the lines, where several statements say the same.
    """

    asked: Callable[[Params], list[Fact]]
    answered: Callable[[Params, Rows], list[End]]
    told_as: str | None = None


# --- what is asked ---------------------------------------------------------------------------------


def _jobs(params: Params) -> list[Fact]:
    fields = ("queue", "name", "scope", "key")
    return [
        {"job": row[0], **_given(template, fields), **_turns(template, row[4:6]), **_label(row)}
        for template in _document(params["jobs"])
        for row in template["jobs"]
    ]


def _label(row: Sequence[Any]) -> Fact:
    """The label of a job, if it has one."""
    label = row[7] if len(row) > 7 else None
    return {} if label is None else {"affinity": label}


def _turns(template: Mapping[str, Any], turns: Sequence[Any]) -> Fact:
    """What a job that waits for its turn says of it: its exclusive key, and the limits that it names."""
    if not any(turns):
        return {}
    key, limits = turns
    known = {"exclusive": key, "limits": limits, **template}
    return {
        "state": State.WAITING.value,
        **_given(known, ("exclusive", "limits", "exclusive_at_once", "strict")),
    }


def _one_new(params: Params) -> list[Fact]:
    return [{"job": params["id"], **_given(params, ("queue", "name", "scope", "key"))}]


def _copied(params: Params) -> list[Fact]:
    """The first columns of a COPY: id, queue, name. What comes by it has no key."""
    lines = [line.split("\t", 3) for line in str(params["lines"]).splitlines()]
    return [{"job": job_id, "queue": queue, "name": name} for job_id, queue, name, _ in lines]


def _copied_gated(params: Params) -> list[Fact]:
    """The same, and the last columns: state, gate, key, how many at once, strict, limits, share, label, wait."""
    found: list[Fact] = []
    for fact, line in zip(_copied(params), str(params["lines"]).splitlines(), strict=True):
        _, _, key, at_once, strict, limits, _, label, _ = (_uncopied(text) for text in line.split("\t")[-9:])
        template = {
            "exclusive_at_once": None if at_once is None else int(at_once),
            "strict": strict == "True",
        }
        named = None if limits is None else msgspec.json.decode(f"[{limits[1:-1]}]")
        found.append(fact | _turns(template, (key, named)) | _label((*[None] * 7, label)))
    return found


def _uncopied(text: str) -> str | None:
    """A column of a COPY as it was before."""
    return None if text == r"\N" else ESCAPED.sub(lambda found: CONTROLS.get(found[1], found[1]), text)


def _keys(params: Params) -> list[Fact]:
    fields = ("scope", "key", "fingerprint")
    return [{"job": claim.get("job_id"), **_given(claim, fields)} for claim in _document(params["keys"])]


def _outcomes(params: Params) -> list[Fact]:
    return [
        {"job": each["id"], "attempt": each["attempt"], "holder": params["holder"]}
        | ({"how": each["kind"]} if "kind" in each else {})
        for each in _document(params["outcomes"])
    ]


def _ids(params: Params) -> list[Fact]:
    ids = params["ids"]
    assert isinstance(ids, list)
    return [{"job": job_id} for job_id in ids]


def _changing(params: Params) -> list[Fact]:
    return [{"job": job_id} for line in _document(params["changes"]) for job_id in line["ids"]]


def _holders(params: Params) -> list[Fact]:
    dead = params["dead"]
    assert isinstance(dead, list)
    return [{"holder": holder} for holder in dead]


def _registration(params: Params) -> list[Fact]:
    info = msgspec.json.decode(str(params["info"])) if params.get("info") else {}
    slots = info.get("slots") if isinstance(info, dict) else None
    return [_named(params, "holder", "lease_s") | ({"slots": slots} if isinstance(slots, int) else {})]


def _renewal(params: Params) -> list[Fact]:
    """The slots are what the worker says it has now: they may have been changed while it ran."""
    fact = _named(params, "holder")
    if params.get("stated"):
        stated = msgspec.json.decode(str(params["stated"]), type=Stated)
        fact["slots"] = sum(group.slots for group in stated.slot_groups)
    return [fact]


def _claim(params: Params) -> list[Fact]:
    return [{**_named(params, "holder", "queue", "limit"), **_labels(params)}]


def _labels(params: Params) -> Fact:
    """The labels from whose lanes a claim takes."""
    lanes = [lane for _, lane, *_ in _document(params["lanes"])]
    labels = dict.fromkeys(label for each in lanes if (label := label_of(str(each))) is not None)
    return {"labels": list(labels)} if labels else {}


def _one(*fields: str) -> Callable[[Params], list[Fact]]:
    """One fact from parameters; the job's id is the parameter `id`."""

    def asked(params: Params) -> list[Fact]:
        job: Fact = {"job": params["id"]} if "id" in params else {}
        return [job | _named(params, *fields)]

    return asked


# --- what the rows say -----------------------------------------------------------------------------


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
        for fact in _outcomes(params)
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


def _inserted(params: Params, rows: Rows) -> list[End]:
    ids = {str(row[0]) for row in rows}
    return [(Kind.OK, fact | {"new": fact["job"] in ids}) for fact in _jobs(params)]


def _reserved(params: Params, rows: Rows) -> list[End]:
    """The keys that were free are ours; of the others the next statement tells the owner."""
    taken = {(str(row[0]), str(row[1])) for row in rows}
    return [
        (Kind.OK, fact | {"new": True})
        if (fact["scope"], fact["key"]) in taken
        else (Kind.FAIL, fact | {"code": REFUSED})
        for fact in _keys(params)
    ]


def _owned(_: Params, rows: Rows) -> list[End]:
    found = [
        {"scope": str(row[0]), "key": str(row[1]), "job": str(row[2]), "fingerprint": str(row[3])}
        for row in rows
        if not row[4]
    ]
    return [(Kind.OK, fact) for fact in found] or [(Kind.OK, {})]


def _claimed(params: Params, rows: Rows) -> list[End]:
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
                **_labels(params),
            },
        )
        for job in decoded(rows)
    ] or [(Kind.OK, {"holder": holder})]


def _asked_of(params: Params, rows: Rows) -> list[End]:
    holders = {str(row[0]): str(row[1]) for row in rows}
    return [
        (Kind.OK, fact | {"holder": holders[fact["job"]]})
        if fact["job"] in holders
        else (Kind.FAIL, fact | {"code": REFUSED})
        for fact in _ids(params)
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
    "submit": Verb(_jobs, partial(_new, _jobs)),
    "submit_one": Verb(_one_new, partial(_new, _one_new), "submit"),
    "copy_jobs": Verb(_copied, partial(_new, _copied), "submit"),
    "copy_gated": Verb(_copied_gated, partial(_new, _copied_gated), "submit"),
    "resubmit": Verb(_jobs, _inserted, "submit"),
    "withdraw": _each(_ids),
    "reserve_keys": Verb(_keys, _reserved),
    "read_keys": Verb(_nothing, _owned),
    "drop_expired_keys": _rows(_as_key),
    "give_keys_back": _rows(_as_key),
    "purge_keys": _rows(_as_key),
    "give_turns": Verb(_ids, partial(_moved, _ids, State.QUEUED), "hand_over"),
    "take_turns_back": _each(_ids, State.WAITING),
    "claim": Verb(_claim, _claimed),
    "fall_back": _rows(partial(_as_job, State.QUEUED)),
    "succeed": _each(_outcomes, State.SUCCEEDED),
    "fail": _each(_outcomes, State.FAILED),
    "park": _each(_outcomes, State.FAILED),
    "stop": _each(_outcomes, State.CANCELLED),
    "requeue": Verb(_outcomes, partial(_requeued, _outcomes)),
    "suspend": _each(_outcomes, State.WAITING),
    "suspend_new": _each(_ids, State.WAITING),
    "hold_flow_jobs": _each(_ids, State.WAITING),
    "wake": Verb(_ids, partial(_requeued, _ids)),
    "crash": Verb(_outcomes, _crashed),
    "archive": _each(_ids),
    "progress": _single(_one(*_FENCE)),
    "log": _single(_one(*_FENCE)),
    "note_alone": _single(_one(*_FENCE)),
    "change": Verb(_changing, partial(_changed, _changing)),
    "replace_jobs": Verb(_jobs, partial(_changed, _jobs), "change"),
    "cancel_idle": _each(_ids, State.CANCELLED),
    "ask_cancel": Verb(_ids, _asked_of),
    "expire": _rows(partial(_as_job, State.FAILED)),
    "disown": _rows(partial(_as_job, State.FAILED)),
    "revive": Verb(_ids, partial(_requeued, _ids)),
    "delete": _each(_ids),
    "purge_by_age": _PURGE,
    "purge_by_own_age": _PURGE,
    "purge_by_count": _PURGE,
    "purge_spent": _PURGE,
    "detach_period": Verb(_nothing, _done),
    "finalize_period": Verb(_nothing, _done),
    "drop_period": Verb(_nothing, _done),
    "reclaim": _rows(_as_taken, _holders),
    "time_out": _rows(_as_taken),
    "die": _rows(_as_holder),
    "die_ahead": _rows(_as_holder),
    "adopt": _rows(_as_holder),
    "register": _single(_registration),
    "renew": _single(_renewal),
    "order_worker": _single(_one("holder")),
    "retire": _single(_one("holder")),
}

# Reads that tell the database's clock on the way: where in their rows, in microseconds.
CLOCKS: dict[str, int] = {"clock": 0, "lanes": 3}


# --- small things ----------------------------------------------------------------------------------


def _document(text: Param) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = msgspec.json.decode(str(text))
    return found


def _given(source: Mapping[str, Any], fields: tuple[str, ...]) -> Fact:
    return {name: source[name] for name in fields if source.get(name) is not None}


def _named(params: Params, *fields: str) -> Fact:
    return {name: params[name] for name in fields if name in params}
