"""What each writing statement of the store asks for: facts from its parameters, before it is sent."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from fencerow.core.model.lane import label_of
from fencerow.core.model.state import State
from fencerow.core.model.wanted import Stated
from fencerow.db.run import Param
from fencerow.turns.gates import LIMIT
from fencerow_proof.history.recorder import Fact

ESCAPED = re.compile(r"\\(.)")
CONTROLS = {"n": "\n", "t": "\t", "r": "\r"}
Params = Mapping[str, Param]


def jobs(params: Params) -> list[Fact]:
    """The jobs of a submit."""
    fields = ("queue", "name", "scope", "key")
    return [
        {"job": row[0], **_given(template, fields), **_turns(template, row[3:6]), **_label(row)}
        for template in _document(params["jobs"])
        for row in template["jobs"]
    ]


def _label(row: Sequence[Any]) -> Fact:
    """The label of a job, if it has one."""
    label = row[7] if len(row) > 7 else None
    return {} if label is None else {"affinity": label}


def _turns(template: Mapping[str, Any], turns: Sequence[Any]) -> Fact:
    """What a job with turns says of them: the gate where it waits first, its exclusive key, and the limits it names.

    One that is stored with its turn names no gate, and is queued.
    """
    if not any(turns):
        return {}
    gate, key, limits = turns
    known = {"exclusive": key, "limits": limits, **template}
    return {
        "state": stored_as(waits=gate is not None),
        **_given(known, ("exclusive", "limits", "exclusive_at_once", "strict")),
    }


def stored_as(*, waits: bool) -> str:
    """The state of a new job."""
    return (State.WAITING if waits else State.QUEUED).value


def one_new(params: Params) -> list[Fact]:
    """The one job of a submit."""
    return [{"job": params["id"], **_given(params, ("queue", "name", "scope", "key"))}]


def one_keyed(params: Params) -> list[Fact]:
    """The one job of a submit, which needs the turn of its key: only the answer tells whether it has that at once."""
    turns = _given(params, ("exclusive", "exclusive_at_once", "strict"))
    return [one_new(params)[0] | turns]


def alike(params: Params) -> list[Fact]:
    """The jobs of a submit by arrays, which have all but their ids in common."""
    same = _given(params, ("queue", "name", "scope", "key"))
    return [{"job": job_id, **same} for job_id in str(params["ids"])[1:-1].split(",")]


def copied(params: Params) -> list[Fact]:
    """The first columns of a COPY: id, queue, name. What comes by it has no key."""
    lines = [line.split("\t", 3) for line in str(params["lines"]).splitlines()]
    return [{"job": job_id, "queue": queue, "name": name} for job_id, queue, name, _ in lines]


def copied_gated(params: Params) -> list[Fact]:
    """The same, and the last columns: state, gate, key, how many at once, strict, limits, share, label, wait."""
    found: list[Fact] = []
    for fact, line in zip(copied(params), str(params["lines"]).splitlines(), strict=True):
        _, gate, key, at_once, strict, limits, _, label, _ = (
            _uncopied(text) for text in line.split("\t")[-9:]
        )
        template = {
            "exclusive_at_once": None if at_once is None else int(at_once),
            "strict": strict == "True",
        }
        named = None if limits is None else msgspec.json.decode(f"[{limits[1:-1]}]")
        found.append(fact | _turns(template, (gate, key, named)) | _label((*[None] * 7, label)))
    return found


def _uncopied(text: str) -> str | None:
    """A column of a COPY as it was before."""
    return None if text == r"\N" else ESCAPED.sub(lambda found: CONTROLS.get(found[1], found[1]), text)


def keys(params: Params) -> list[Fact]:
    """The keys of new jobs."""
    fields = ("scope", "key", "fingerprint")
    return [{"job": claim.get("job_id"), **_given(claim, fields)} for claim in _document(params["keys"])]


def outcomes(params: Params) -> list[Fact]:
    """The attempts that end."""
    return [
        {"job": each["id"], "attempt": each["attempt"], "holder": params["holder"]}
        | ({"how": each["kind"]} if "kind" in each else {})
        for each in _document(params["outcomes"])
    ]


def successes(params: Params) -> list[Fact]:
    """The attempts that end well, and whom that queues."""
    return outcomes(params) + passing_on(params)


def passing_on(params: Params) -> list[Fact]:
    """The turns that ends pass on: only the answer tells to whom."""
    return [{"verb": "hand_over"}] if params["alone"] else []


def look(params: Params) -> list[Fact]:
    """A look at these gates of limits: only the answer tells who gets a turn."""
    gates = params["gates"]
    assert isinstance(gates, list)
    return [{"limits": [str(gate).removeprefix(LIMIT) for gate in gates]}]


def ids(params: Params) -> list[Fact]:
    """The jobs that are named."""
    ids = params["ids"]
    assert isinstance(ids, list)
    return [{"job": job_id} for job_id in ids]


def changing(params: Params) -> list[Fact]:
    """The jobs that a person changes."""
    return [{"job": job_id} for line in _document(params["changes"]) for job_id in line["ids"]]


def holders(params: Params) -> list[Fact]:
    """The workers that are dead."""
    dead = params["dead"]
    assert isinstance(dead, list)
    return [{"holder": holder} for holder in dead]


def registration(params: Params) -> list[Fact]:
    """The worker that registers."""
    info = msgspec.json.decode(str(params["info"])) if params.get("info") else {}
    slots = info.get("slots") if isinstance(info, dict) else None
    return [_named(params, "holder", "lease_s") | ({"slots": slots} if isinstance(slots, int) else {})]


def renewal(params: Params) -> list[Fact]:
    """The slots are what the worker says it has now: they may have been changed while it ran."""
    fact = _named(params, "holder")
    if params.get("stated"):
        stated = msgspec.json.decode(str(params["stated"]), type=Stated)
        fact["slots"] = sum(group.slots for group in stated.slot_groups)
    return [fact]


def claim(params: Params) -> list[Fact]:
    """Who claims, and where; jobs that waited for a turn get one with it."""
    handed: list[Fact] = [{"verb": "hand_over"}] if params["given"] else []
    return [{**_named(params, "holder", "queue", "limit"), **labels(params)}, *handed]


def labels(params: Params) -> Fact:
    """The labels from whose lanes a claim takes."""
    lanes = [lane for _, lane, *_ in _document(params["lanes"])]
    labels = dict.fromkeys(label for each in lanes if (label := label_of(str(each))) is not None)
    return {"labels": list(labels)} if labels else {}


def one(*fields: str) -> Callable[[Params], list[Fact]]:
    """One fact from parameters; the job's id is the parameter `id`."""

    def asked(params: Params) -> list[Fact]:
        job: Fact = {"job": params["id"]} if "id" in params else {}
        return [job | _named(params, *fields)]

    return asked


def _document(text: Param) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = msgspec.json.decode(str(text))
    return found


def _given(source: Mapping[str, Any], fields: tuple[str, ...]) -> Fact:
    return {name: source[name] for name in fields if source.get(name) is not None}


def _named(params: Params, *fields: str) -> Fact:
    return {name: params[name] for name in fields if name in params}
