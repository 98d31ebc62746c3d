"""The reckoning after a storm: what clients were told and what jobs did, against what the database holds."""

from __future__ import annotations

import hashlib
import json
import uuid
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from fencerow.core.model.state import FINAL, State
from fencerow.db.queries import postgres_names, sqlite_names
from fencerow.db.sqlite import SqliteEngine
from fencerow.errors import PayloadMissing
from fencerow_proof.arena.invariants import EDGES, together
from fencerow_proof.history.check import Options, check
from fencerow_proof.history.report import NAMES, Breach, Report
from tests.proof.storm import ledger
from tests.proof.storm.bugs import PAYLOADS_THERE
from tests.proof.storm.outside import StormStore
from tests.proof.storm.plan import LIMITS
from tests.proof.storm.post import HISTORY
from tests.proof.storm.record import Told, lines, operations
from tests.proof.storm.work import HEALTHY, TRANSACTIONAL, number_in

# What ends a claim. Of a job that succeeded each claim but the last has one such line, of any other each claim.
ENDINGS = frozenset(
    {"retried", "snoozed", "released", "reclaimed", "crashed", "timed_out", "failed", "stopped"}
)
SINKLESS = TRANSACTIONAL
SUBMITTED = (("queued", 0), ("waiting", 0))
OUT_OF_TIME = "AttemptTimeout"
LOST = -1  # the number of a job whose arguments are away


Standing = tuple[str, int, object]  # state, attempt, holder


@dataclass(frozen=True)
class Row:
    """A job as it stands at the end."""

    name: str
    state: State
    attempt: int
    number: int
    result: object
    key: str | None
    priority: int


@dataclass
class Books:
    """What was found. `wrong` has a line for each promise that was broken."""

    wrong: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    checked: Counter[str] = field(default_factory=Counter)
    outcomes: Counter[str] = field(default_factory=Counter)
    answers: Counter[str] = field(default_factory=Counter)
    outside: set[str] = field(default_factory=set)  # what rows refer to in the store of large payloads

    def refuse(self, promise: str, found: Iterable[str], checked: int) -> None:
        """Note how many were looked at, and which of them broke the promise."""
        self.checked[promise] += checked
        lines_found = list(found)
        if lines_found:
            self.wrong[promise] += lines_found


def reckon(engine: ledger.Engine, folder: Path) -> Books:
    """Check everything that must hold when the storm is over and all jobs have ended."""
    books = Books()
    rows = _rows(books, engine, StormStore(folder, "the books"))
    told = list(operations(sorted(folder.glob("*.client"))))
    books.outcomes.update(f"{row.state}" for row in rows.values())
    books.answers.update(f"{each.verb}: {each.phase}" for each in told)
    books.refuse(
        "all ended", (f"{i} is {r.state}" for i, r in rows.items() if r.state not in FINAL), len(rows)
    )
    _check_submits(books, rows, told)
    _check_keys(books, rows, told)
    _check_moving(books, rows, told)
    _check_changes(books, rows, told)
    _check_effects(books, rows, engine)
    _check_sink(books, rows, folder)
    _check_results(books, rows)
    _check_moves(books, rows, engine)
    _check_claims(books, rows, engine)
    _check_healthy(books, rows, engine)
    _check_tables(books, engine)
    _check_history(books, engine, folder)
    wrong = [
        line["error"] for path in folder.glob("*.client") for line in lines(path) if line["phase"] == "wrong"
    ]
    books.refuse("each error says what to do", wrong, sum(each.phase != "ok" for each in told))
    return books


def _rows(books: Books, engine: ledger.Engine, store: StormStore) -> dict[str, Row]:
    """All jobs. A payload outside that is missing, or is not what was put there, is nothing at all."""
    found, wrong = {}, []
    is_text = isinstance(engine, SqliteEngine)

    def whole(job_id: object, stored: object) -> object:
        # psycopg has decoded it, also to a text: a result for which the store was away.
        payload = json.loads(stored) if is_text and isinstance(stored, str) else stored
        reference = payload.get("fencerow:outside") if isinstance(payload, dict) else None
        if reference is None:
            return payload
        books.outside.add(reference["name"])
        try:
            data = store.get(reference["name"], reference["bytes"])
        except PayloadMissing:
            wrong.append(f"{reference['name']} of job {job_id} is missing")
            return None
        if hashlib.sha256(data).hexdigest() != reference["sha256"]:
            wrong.append(f"{reference['name']} of job {job_id} is another")
        return json.loads(data)

    text = "SELECT id, name, state, attempt, args, result, key, priority FROM fencerow.all_jobs"
    for job_id, name, state, attempt, args, result, key, priority in ledger.ask(engine, text):
        if _is_forged(str(job_id)):  # an outage kept the fault from taking it away again
            continue
        arguments = whole(job_id, args)
        number = next(iter(arguments.values())) if isinstance(arguments, dict) else LOST
        found[str(job_id)] = Row(
            str(name),
            State(str(state)),
            int(str(attempt)),
            number,
            number_in(whole(job_id, result)),
            None if key is None else str(key),
            int(str(priority)),
        )
    books.refuse(PAYLOADS_THERE, wrong, len(books.outside))
    return found


def _check_submits(books: Books, rows: dict[str, Row], told: Sequence[Told]) -> None:
    """Accepted: there, under the id that was given. Refused: nothing. In doubt: all or nothing, once."""
    by_number: dict[int, list[str]] = defaultdict(list)
    for job_id, row in rows.items():
        if row.key is None:
            by_number[row.number].append(job_id)
    known: set[int] = set()
    lost, kept, torn = [], [], []
    submits = [each for each in told if each.verb in ("submit", "bulk") and "key" not in each.asked]
    for each in submits:
        numbers: list[int] = each.asked["numbers"]
        known.update(numbers)
        there = [by_number.get(number, []) for number in numbers]
        if each.phase == "ok":
            ids: list[str] = each.answer["answer"]
            lost += [f"{n} {i}" for n, i, found in zip(numbers, ids, there, strict=True) if found != [i]]
        elif each.phase in ("no", "refused"):
            kept += [f"{n}: {each.answer}" for n, found in zip(numbers, there, strict=True) if found]
        elif len({len(found) for found in there}) != 1 or any(len(found) > 1 for found in there):
            torn.append(f"{numbers} {each.answer}")
    books.refuse("what was accepted is there", lost, sum(e.phase == "ok" for e in submits))
    books.refuse(
        "of what was refused nothing is there", kept, sum(e.phase in ("no", "refused") for e in submits)
    )
    books.refuse("what was in doubt is there whole or not", torn, sum(e.phase == "unknown" for e in submits))
    books.refuse(
        "no submit made two jobs", (f"{n}: {i}" for n, i in by_number.items() if len(i) > 1), len(known)
    )
    books.refuse("no job came from nowhere", (f"{n}" for n in by_number if n not in known), len(by_number))


def _check_keys(books: Books, rows: dict[str, Row], told: Sequence[Told]) -> None:
    """One key, one job, one answer; another payload under it is refused."""
    jobs: dict[str, set[str]] = defaultdict(set)
    for job_id, row in rows.items():
        if row.key is not None:
            jobs[row.key].add(job_id)
    wrong = [f"{key}: {sorted(ids)}" for key, ids in jobs.items() if len(ids) > 1]
    keyed = [each for each in told if "key" in each.asked]
    for each in keyed:
        if each.phase == "ok":
            (job_id,) = each.answer["answer"]
            there = rows.get(job_id)
            if there is None or (there.key, there.number) != (each.asked["key"], each.asked["numbers"][0]):
                wrong.append(f"{each.asked['key']}: answered {job_id}, there is {there}")
        elif each.phase == "refused" and each.answer["code"] != "KeyConflict":
            wrong.append(f"{each.asked['key']}: {each.answer}")
    books.refuse("one key, one job, one answer", wrong, len(keyed))


def _check_moving(books: Books, rows: dict[str, Row], told: Sequence[Told]) -> None:
    """What clients were told of ends and cancels is what is stored. A job of which a revive was asked may go on."""
    revived = {each.asked["job"] for each in told if each.verb == "revive"}
    cancelled = [each for each in told if each.verb == "cancel" and each.answer.get("answer") == "cancelled"]
    results = [each for each in told if each.verb == "result" and each.phase == "ok"]
    wrong = [
        f"{each.asked['job']} {rows.get(each.asked['job'])}"
        for each in cancelled
        if each.asked["job"] not in revived and _state(rows, each) != "cancelled"
    ]
    books.refuse("what was cancelled stays cancelled", wrong, len(cancelled))
    wrong = [
        f"{each.answer} {rows.get(each.asked['job'])}"
        for each in results
        if each.asked["job"] not in revived
        and (_state(rows, each), _result(rows, each)) != (each.answer["ended"], each.answer.get("value"))
    ]
    books.refuse("results are as they were told", wrong, len(results))


def _check_changes(books: Books, rows: dict[str, Row], told: Sequence[Told]) -> None:
    """Whoever was told that a job was changed finds it so, and whoever was refused finds it as it was submitted."""
    wrong, changes = [], [each for each in told if each.verb == "change"]
    for each in changes:
        row, asked = rows.get(each.asked["job"]), int(each.asked["priority"])
        possible = {"ok": {asked}, "refused": {0}, "no": {0}}.get(each.phase, {0, asked})
        if row is None or row.priority not in possible:
            wrong.append(f"{each.asked} {each.phase}: {row}")
        elif each.phase == "refused" and each.answer["code"] != "IllegalMove":
            wrong.append(f"{each.asked}: {each.answer}")
    books.refuse("changes are as they were told", wrong, len(changes))


def _check_effects(books: Books, rows: dict[str, Row], engine: ledger.Engine) -> None:
    """Exactly one effect of each success, by the attempt that succeeded; none of anything else."""
    effects: dict[str, list[int]] = defaultdict(list)
    for job_id, attempt in ledger.ask(engine, "SELECT job, attempt FROM fencerow.effect"):
        effects[str(job_id)].append(int(str(attempt)))
    due = {i: [r.attempt] for i, r in rows.items() if r.name in TRANSACTIONAL and r.state is State.SUCCEEDED}
    wrong = [
        f"{i}: {effects.get(i, [])} of {rows.get(i)}"
        for i in {*due, *effects}
        if effects.get(i, []) != due.get(i, [])
    ]
    books.refuse("effects are there exactly once", wrong, len({*due, *effects}))


def _check_sink(books: Books, rows: dict[str, Row], folder: Path) -> None:
    """Outside: at least once for each success, at most once for each attempt."""
    seen: Counter[tuple[str, int]] = Counter()
    for path in folder.glob("*.sink"):
        for line in path.read_text().splitlines():
            job_id, attempt = line.split()
            seen[job_id, int(attempt)] += 1
    ran = {job_id for job_id, _ in seen}
    wrong = [f"{key} ran {count} times" for key, count in seen.items() if count > 1]
    wrong += [f"{key} of {rows.get(key[0])}" for key in seen if not _has_attempt(rows, *key)]
    due = [i for i, r in rows.items() if r.name not in SINKLESS and r.state is State.SUCCEEDED]
    wrong += [f"{i} succeeded and never ran" for i in due if i not in ran]
    books.refuse("each attempt ran at most once, each success at least once", wrong, len(seen))


def _check_results(books: Books, rows: dict[str, Row]) -> None:
    """A result is the number of the attempt that made it: of a stale attempt none is accepted."""
    done = [(i, row) for i, row in rows.items() if row.state is State.SUCCEEDED]
    books.refuse("no late writer", (f"{i} {row}" for i, row in done if row.result != row.attempt), len(done))


def _check_moves(books: Books, rows: dict[str, Row], engine: ledger.Engine) -> None:
    """Each move is an edge of the table of moves; attempts go up by one with each claim and never otherwise."""
    moves: dict[str, list[Standing]] = defaultdict(list)
    wrong, count = [], 0
    for job, state, attempt, holder in ledger.ask(
        engine, "SELECT job, state, attempt, holder FROM fencerow.move ORDER BY number"
    ):
        if _is_forged(str(job)):  # who takes them away again may be cut off between the row and its moves
            continue
        mine, now = moves[str(job)], (str(state), int(str(attempt)), holder)
        count += 1
        if now[0] != "withdrawn":
            mine.append(now)
        elif mine.pop()[:2] not in SUBMITTED or not mine:
            # A repeated submit inserts again, and takes that back when it finds the job among the finished.
            wrong.append(f"{job}: withdrawn and nowhere else")
    for job, mine in moves.items():
        pairs = zip([None, *mine], mine, strict=False)
        wrong += [f"{job}: {before} -> {now}" for before, now in pairs if not _is_legal(before, now)]
    wrong += [
        f"{i}: last {moves[i][-1:]}, stands {r}"
        for i, r in rows.items()
        if [each[:2] for each in moves[i][-1:]] != [(r.state, r.attempt)]
    ]
    books.refuse("every move is legal", wrong, count)


def _is_legal(before: Standing | None, now: Standing) -> bool:
    if before is None:
        return now[:2] in SUBMITTED
    if before[0] == now[0]:  # the row of an ended job moves to the other table as it is
        return before[1] == now[1] and before[0] != "running"
    claimed = now[0] == "running"
    return (State(before[0]), State(now[0])) in EDGES and now[1] == before[1] + claimed


def _check_claims(books: Books, rows: dict[str, Row], engine: ledger.Engine) -> None:
    """Each claim came to exactly one end."""
    ended: dict[str, list[int]] = defaultdict(list)
    for job, attempt, kind in ledger.ask(engine, "SELECT job_id, attempt, kind FROM fencerow.job_events"):
        if kind in ENDINGS:
            ended[str(job)].append(int(str(attempt)))
    wrong = [
        f"{i} {row}: {sorted(ended[i])}"
        for i, row in rows.items()
        if sorted(ended[i]) != list(range(1, row.attempt + (row.state is not State.SUCCEEDED)))
    ]
    books.refuse("each claim has one end", wrong, sum(row.attempt for row in rows.values()))


def _check_healthy(books: Books, rows: dict[str, Row], engine: ledger.Engine) -> None:
    """No job whose handler does nothing wrong fails, and none is ended by a time limit that it would have kept."""
    healthy = {i: row for i, row in rows.items() if row.name in HEALTHY}
    wrong = [f"{i} {row}" for i, row in healthy.items() if row.state is State.FAILED]
    ends = ledger.ask(engine, "SELECT job_id, attempt, kind, detail FROM fencerow.job_events")
    wrong += [
        f"{job} {healthy[str(job)].name}, attempt {attempt}: {kind} {detail}"
        for job, attempt, kind, detail in ends
        if str(job) in healthy and (kind == "timed_out" or OUT_OF_TIME in str(detail))
    ]
    books.refuse("nothing healthy was failed", wrong, len(healthy))


def _check_tables(books: Books, engine: ledger.Engine) -> None:
    """The invariants of the tables, and of the file itself."""
    is_file = isinstance(engine, SqliteEngine)
    rename = sqlite_names("fencerow_") if is_file else postgres_names("fencerow")
    with engine.session() as session:
        broken = [str(row[0]) for row in session.connection.execute(together(rename)).fetchall()]
        books.refuse("the tables agree", broken, 1)
        if is_file:
            for name in ("main", "fencerow_file"):
                said = session.connection.execute(f"PRAGMA {name}.integrity_check").fetchall()
                books.refuse("the file is whole", (str(row) for row in said if row[0] != "ok"), 1)


def _check_history(books: Books, engine: ledger.Engine, folder: Path) -> None:
    """What each process recorded of its own statements, decided by the checker that users have."""
    # Jumps of the clock are faults of ours; recovery within its bound is measured elsewhere.
    options = Options(effects=TRANSACTIONAL, limits=LIMITS, clock_moved=True)
    report = check([folder / HISTORY], engine, options)
    found = [each for each in report.violations if not _is_forged(each.job)]
    for number, name in NAMES.items():
        broken = [f"{each.what} (job {each.job})" for each in found if each.invariant == number]
        books.refuse(f"history: {name} ({number})", broken, report.looked[number])


def _is_forged(job_id: str | None) -> bool:
    """Whether a fault of ours wrote the row, under a random id: no history can tell who submitted it."""
    return job_id is not None and uuid.UUID(job_id).version == 4


def _with_proofs(report: Report, found: Breach) -> str:
    proofs = "".join(f"\n        {each.path.name}:{each.number} {each.text}" for each in report.proofs(found))
    return f"{found.what} (job {found.job}){proofs}"


def _state(rows: dict[str, Row], each: Told) -> str:
    row = rows.get(each.asked["job"])
    return "gone" if row is None else str(row.state)


def _result(rows: dict[str, Row], each: Told) -> object:
    row = rows.get(each.asked["job"])
    return None if row is None or row.state is not State.SUCCEEDED else row.result


def _has_attempt(rows: dict[str, Row], job_id: str, attempt: int) -> bool:
    return job_id in rows and attempt <= rows[job_id].attempt


def shown(wrong: dict[str, list[str]], each: int = 5) -> Iterator[str]:
    """The broken promises, with the first few findings of each."""
    for promise, found in wrong.items():
        yield f"{promise}: {len(found)}\n" + "\n".join(f"    {line[:2000]}" for line in found[:each])
