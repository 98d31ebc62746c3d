"""Turns at the gates: who waits for one, who gets the next.

Of a key no more jobs run at once than it allows. A job that needs a turn waits at a gate, in no lane. Its turn is
not stored: the jobs of a key that are queued or running have its turns. `hand_over` gives what is left to those who
wait, the highest priority first, then the earliest due, then the smallest id.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from fencerow.core.chore import Taking
from fencerow.core.model.job import Claimed
from fencerow.core.store.attempts import Requeued, requeued_rows
from fencerow.db.due import OWN, Due
from fencerow.db.run import (
    Operation,
    Row,
    Rows,
    Steps,
    as_int,
    as_int_or_none,
    execute,
    execute_ahead,
    first_column,
    operation,
    text_or_none,
)
from fencerow.turns.gates import (
    KEY,
    LIMIT,
    ROOM_MAX,
    Candidate,
    Choice,
    Gate,
    KeptTurn,
    by_wanted,
    candidate_of,
    choose,
    choose_kept,
    gates_of,
)
from fencerow.turns.limiting import Held, locked_limits

GATES_MAX = 500  # that one hand-over looks at
BESIDE = 50  # of the first in each lane, whose other gates are locked with its own: others are taken if they are free
AGED_S = 10.0  # since it was due: from then on turns are kept for a job that needs several
KEPT_S = 60.0  # for so long at most, and then for nobody for as long
SOON_S = 0.5  # until the next look at a gate where somebody had locked who comes first


class HandedOver(msgspec.Struct, frozen=True):
    """Who got a turn; and whether there may be more to do at once."""

    queued: list[Requeued]
    more: bool
    news: list[str] = []  # what people are to be told of limits, and of jobs that nobody can place
    last: int = 0  # the highest of the arrivals that were taken
    claimed: list[Claimed] = []  # who got a turn and a slot of this worker at once
    alike: bool = False  # many, and of those who came first nobody needed another gate


@operation(repeatable=True, keeps_plans=True)
def hand_over(
    gates: Iterable[str] = (),
    *,
    due: Due = OWN,
    after: int = 0,
    beside: int = BESIDE,
    taking: Taking | None = None,
) -> Steps[HandedOver]:
    """Give free turns to those who wait for them, at gates where somebody came or left, and at these `gates`.

    Locks the rows of the gates, in sorted order, with those of all other gates at which jobs that come first there
    need a turn too: two that meet at a gate take turns themselves. Then locks the limits. Locked jobs are passed over.
    One whose key and limits cannot be read waits apart from then on, and the doctor tells of it. May be repeated, by
    anybody at any time: what is given is what is free. `due` says what is due beyond the database's now, after its
    clock went back. `after`: of arrivals only those behind this one are taken. `beside`: of how many in each lane at a
    limit the other gates are locked, too; 0: nobody is expected to need one, and who does may wait for the next look.
    With `taking` it claims what it gives for slots of this worker, as far as those want it, and is not repeated then.
    """
    rows = yield from execute("take_arrivals", limit=GATES_MAX, after=after)
    last = max((as_int(row[1]) for row in rows if row[1] is not None), default=0)
    names = {str(row[0]) for row in rows if row[0] is not None}.union(gates)
    if not names:
        return HandedOver([], more=len(rows) >= GATES_MAX, last=last)
    locked: dict[str, Gate] = {}
    known_us: dict[str, int | None] = {}
    choice = Choice()
    first = yield from _with_those_beside(names, due, beside)
    yield from execute_ahead("lock_gates", gates=first)
    given = yield from _join(first, locked, known_us, choice, due, early=not beside)
    todo = dict(locked)
    if names.issuperset(first) and all(gate.is_plain for gate in locked.values()):
        given += yield from _given_alike(todo, choice, due, taking)
    alike = bool(choice.again)
    while todo:
        found = yield from _candidates(todo, due)
        alike = alike and not found
        if joined := (yield from _locked_beside(locked, found)):
            given += yield from _join(joined, locked, known_us, choice, due)
            found += yield from _candidates({name: locked[name] for name in joined}, due)
        part = choose([each for each in found if each.id not in choice.given], locked)
        given += yield from _done(part)
        choice.then(part)
        todo = {name: locked[name] for name in part.more}
    if choice.again:
        yield from execute("arrive", gates=sorted(choice.again))
    yield from _noted(locked.values(), known_us)
    more = bool(choice.again) or len(rows) >= GATES_MAX
    return HandedOver(given, more, _news(locked.values(), choice), last, choice.claimed, alike)


def taking_over(
    taking: Taking, gates: Iterable[str] = (), *, due: Due = OWN, after: int = 0, beside: int = BESIDE
) -> Operation[HandedOver]:
    """`hand_over` that claims, too. It may not be repeated: what it claimed the first time would be nobody's."""
    return msgspec.structs.replace(
        hand_over(gates, due=due, after=after, beside=beside, taking=taking), repeatable=False
    )


def _join(
    names: list[str],
    locked: dict[str, Gate],
    known_us: dict[str, int | None],
    choice: Choice,
    due: Due,
    early: bool = False,
) -> Steps[list[Requeued]]:
    """Open these gates too, which are locked by now, let those wait again whom a limit has stopped, and give the turns
    that are kept."""
    opened, next_us = yield from _opened(names, early=early)
    locked |= opened
    known_us |= next_us
    yield from _stop(opened.values())
    kept = choose_kept((yield from _kept(opened.values(), due)), locked)
    given = yield from _done(kept)
    if over := [gate.name for gate in locked.values() if gate.kept and gate.kept.job_id in kept.given]:
        yield from execute("keep_no_turns", gates=over)
    choice.then(kept)
    return given


def _locked_beside(locked: Mapping[str, Gate], found: Iterable[Candidate]) -> Steps[list[str]]:
    """Lock the gates that are needed beside those that are locked, as far as nobody waits in a ring for that.

    If all of them come later in the order in which gates are locked, it waits for them: those of limits, where keys
    were looked at. Else it takes those of keys that are there and that nobody has locked. Others are left for the next
    look.
    """
    missing = sorted({name for job in found for name in job.gates} - locked.keys())
    if missing and missing[0] > max(locked):
        yield from execute_ahead("lock_gates", gates=missing)
        return missing
    keys = [name for name in missing if name.startswith(KEY)]
    return sorted(first_column((yield from execute("try_gates", gates=keys)))) if keys else []


def _with_those_beside(names: set[str], due: Due, beside: int) -> Steps[list[str]]:
    """These gates, and those that jobs need beside them. Only who has limits needs more than one gate."""
    if beside and any(name.startswith(LIMIT) for name in names):
        rows = yield from execute("gates_beside", gates=sorted(names), limit=beside, **_until(due))
        names = names.union(*(gates_of(text_or_none(row[0]), text_or_none(row[1])) for row in rows))
    return sorted(names)


@operation(repeatable=True)
def take_turns_back(
    gates: Iterable[str], *, unclaimed_s: float | None, actor: str | None = None
) -> Steps[list[str]]:
    """At these gates, let turns go on that nobody uses, where a job of another queue could have them.

    These are turns of jobs whose queue is paused, and turns that nobody has claimed for `unclaimed_s` (None: only the
    former). The jobs wait again, in their places; at these gates the queues where nobody claims are passed over for as
    long. A claim that comes first keeps the job. Locked jobs are left. May be repeated, by anybody at any time.
    """
    return (yield from _taken_back(list(gates), stopped=[], unclaimed_s=unclaimed_s, actor=actor))


def _taken_back(
    gates: Sequence[str], *, stopped: Sequence[str], unclaimed_s: float | None, actor: str | None
) -> Steps[list[str]]:
    """Take back what nobody uses of the turns at these gates, and of those at `stopped` ones all."""
    rows = yield from execute(
        "find_unused_turns", gates=list(gates), stopped=list(stopped), unclaimed_s=unclaimed_s
    )
    taken: dict[str, dict[str, object]] = {}
    for job_id, gate, why in rows:  # one that nobody uses at several gates waits at the first
        passed_s = unclaimed_s if why == "unclaimed" else None
        taken.setdefault(
            str(job_id), {"id": str(job_id), "gate": str(gate), "why": str(why), "passed_s": passed_s}
        )
    if not taken:
        return []
    document = _document(list(taken.values()))
    return first_column((yield from execute("take_turns_back", ids=list(taken), taken=document, actor=actor)))


def _opened(names: list[str], *, early: bool) -> Steps[tuple[dict[str, Gate], dict[str, int | None]]]:
    """Lock the limits of these gates, and count how many turns are taken there, and when each was to be looked at next.

    They are counted in a later statement than the locks, or it would be as it was before the wait for them. `early`:
    behind those of the gates, in one message: only who has them gives turns, and whoever ends then leaves an arrival.
    """
    limits = [name for name in names if name.startswith(LIMIT)]
    rows: Rows = []
    if early and limits:
        rows = yield from execute_ahead("count_turns", gates=names, counted=limits, kept_s=KEPT_S)
    found = (yield from locked_limits([name.removeprefix(LIMIT) for name in limits])) if limits else {}
    rules = {f"{LIMIT}{name}": rule for name, rule in found.items()}
    counted = [name for name, rule in rules.items() if rule.counts]
    gates: dict[str, Gate] = {}
    known_us: dict[str, int | None] = {}
    if not rows or len(counted) < len(rules):
        rows = yield from execute("count_turns", gates=names, counted=counted, kept_s=KEPT_S)
    for row in rows:
        name = str(row[0])
        known_us[name] = as_int_or_none(row[1])
        held = Held(as_int(row[2]), as_int(row[3]))
        kept = None if row[6] is None else KeptTurn(text_or_none(row[5]), as_int(row[6]))
        at_once, awaited = as_int_or_none(row[4]), as_int(row[7])
        gates[name] = Gate(name, held, at_once=at_once, rule=rules.get(name), kept=kept, awaited=awaited)
    return gates, known_us


def _candidates(gates: Mapping[str, Gate], due: Due) -> Steps[list[Candidate]]:
    """The first who wait at each of these gates, as many as there is room for, locked."""
    found: list[Candidate] = []
    for count, names in by_wanted(gates.values()).items():
        rows = yield from execute("find_turns", gates=names, wanted=count, aged_s=AGED_S, **_until(due))
        found += [candidate_of(*row) for row in rows]
    return found


def _given_alike(
    todo: dict[str, Gate], choice: Choice, due: Due, taking: Taking | None
) -> Steps[list[Requeued]]:
    """Give turns at these gates to those who come first and need no other, without choosing among them. `todo` keeps
    the gates that are to be looked at for others."""
    given: list[Requeued] = []
    chosen: Rows = []  # of all these gates, by whose order it is decided who gets a slot
    most = ROOM_MAX if taking is None else min(ROOM_MAX, taking.most())
    for count, names in by_wanted(todo.values()).items():
        if taking is None:
            rows = yield from execute("give_alike", gates=names, wanted=count, **_until(due))
            found = [(str(row[0]), str(row[6])) for row in rows]
            given += sorted(requeued_rows(rows), key=lambda each: (-each.priority, each.run_at_us, each.id))
        else:
            rows = yield from execute("find_alike", gates=names, wanted=min(count, most), **_until(due))
            found = [(str(row[0]), str(row[1])) for row in rows]
            chosen = [*chosen, *rows]
        for job_id, name in found:
            todo[name].given.append(job_id)
        if rows and not rows[0][-1]:  # else somebody was found who needs more, or nobody was found
            choice.again.update(name for name in names if len(todo[name].given) >= most)
            for name in names:
                del todo[name]
    if taking is not None and chosen:
        given += yield from _taken(sorted(chosen, key=_place), choice, taking)
    return given


def _place(row: Row) -> tuple[int, int, str]:
    """Of what `find_alike` tells: who comes first is least."""
    return -as_int(row[4]), as_int(row[5]), str(row[0])


def _taken(rows: Rows, choice: Choice, taking: Taking) -> Steps[list[Requeued]]:
    """Claim those of them that slots of this worker want, of the queue whose job goes first, and queue the others, who
    are returned. The most urgent at all of these gates are claimed first."""
    queue = str(rows[0][2])
    ids = [str(row[0]) for row in rows if row[2] == queue]
    claimed = yield from taking.claim(queue, ids, as_int(rows[0][3]))
    choice.claimed += claimed
    taken = {job.id for job in claimed}
    return (yield from _done(Choice([str(row[0]) for row in rows if row[0] not in taken])))


def _kept(gates: Iterable[Gate], due: Due) -> Steps[list[Candidate]]:
    """The jobs for which turns are kept at these gates, as far as they may go, locked."""
    ids = sorted({gate.kept.job_id for gate in gates if gate.kept is not None and gate.kept.job_id})
    rows = (yield from execute("find_kept", ids=ids, **_until(due))) if ids else []
    return sorted((candidate_of(*row) for row in rows), key=lambda each: each.order)


def _done(choice: Choice) -> Steps[list[Requeued]]:
    """Queue those whose turn it is, and let the others wait where they are to."""
    rows = (yield from execute("give_turns", ids=choice.given)) if choice.given else []
    found = {each.id: each for each in requeued_rows(rows)}
    given = [found[job_id] for job_id in choice.given if job_id in found]  # rows come in no order
    if choice.sent:
        sent: list[dict[str, object]] = [{"id": each, "gate": gate} for each, gate in choice.sent.items()]
        yield from execute("send_on", sent=_document(sent))
    for job_id, gates in choice.kept.items():
        yield from execute("keep_turns", id=job_id, gates=list(gates), kept_s=KEPT_S)
    return given


def _stop(gates: Iterable[Gate]) -> Steps[None]:
    """Where a limit has stopped, let those who have a turn and have not started wait again. They were counted: what is
    given now is rather too little, and their leaving tells of the rest."""
    stopped = [gate.name for gate in gates if gate.rule is not None and gate.rule.is_stopped]
    if stopped:
        yield from _taken_back(stopped, stopped=stopped, unclaimed_s=None, actor=None)


def _news(gates: Iterable[Gate], choice: Choice) -> list[str]:
    rules = [gate.rule for gate in gates if gate.rule is not None]
    apart = [
        f"job {job_id} gets no turn: its key and limits name no gate where it could wait; `fencerow doctor`"
        for job_id in choice.unreadable
    ]
    return [rule.news for rule in rules if rule.news] + apart


def _until(due: Due) -> dict[str, int]:
    """`due` as parameters."""
    return {"due_us": due.until_us, "since_us": due.since_us}


def _noted(gates: Iterable[Gate], known_us: Mapping[str, int | None]) -> Steps[None]:
    """Note what limits are to remember, and when each gate is to be looked at next, where that may be new.

    Where only an end makes room again nothing is to be noted: its arrival tells. Where nobody waits neither: whoever
    comes leaves an arrival. Most gates are like that.
    """
    free: list[str] = []
    noted: list[dict[str, object]] = []
    for gate in gates:
        if gate.rule is not None:
            yield from gate.rule.keep(gate.given, waits=gate.waits)
        again_us = None if gate.is_free else gate.again_us
        if gate.is_free:
            free.append(gate.name)
        if (gate.is_free and gate.awaited) or again_us is not None or known_us[gate.name] is not None:
            noted.append({"gate": gate.name, "again_us": again_us})
    if noted:
        yield from execute("note_gates", gates=free, noted=_document(noted), soon_s=SOON_S)


def _document(rows: list[dict[str, object]]) -> str:
    return msgspec.json.encode(rows).decode()
