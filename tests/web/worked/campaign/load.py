"""Submits jobs, kills workers and endpoints while they are worked, and judges what became of each."""

from __future__ import annotations

import json
import random
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from fencerow.errors import Busy
from tests.core.store.stage import rows
from tests.kit.forking import Fork, context
from tests.kit.jobs import AnyEngine
from tests.kit.pace import PATIENCE_S
from tests.web.worked.campaign.parties import Place, app_at, run_endpoint, run_gateway, run_worker

WORKERS, ENDPOINTS = 3, 2
LOOK_S = 0.05
LOOKS_MAX = 20  # each waits for as long as its engine does
CHUNK = 500


@dataclass
class Found:
    """What became of the jobs. `wrong`: each promise that was broken."""

    kills: int
    took_s: float
    facts: dict[str, Any] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)


def run(engine: AnyEngine, place: Place, *, jobs: int, kills: int) -> Found:
    """The whole load, on a migrated database."""
    began = time.monotonic()
    with app_at(place) as app:
        work = app.jobs["work"]
        for at in range(0, jobs, CHUNK):
            app.submit_many([work.call(number) for number in range(at, min(at + CHUNK, jobs))])
    killed = _killing(engine, place, jobs=jobs, kills=kills)
    found = Found(sum(killed.values()), round(time.monotonic() - began, 1))
    _judge(engine, place, jobs, found)
    found.facts["killed"] = dict(killed)
    return found


# --- killing ---------------------------------------------------------------------------------------


def _killing(engine: AnyEngine, place: Place, *, jobs: int, kills: int) -> Counter[str]:
    """Let all be worked; kill a worker or an endpoint, and start another, whenever so many more jobs have ended."""
    chance, killed = random.Random(place.seed), Counter[str]()
    every = max(1, jobs // (kills + 1))
    kinds: list[tuple[str, Callable[[Place], None]]] = [
        *WORKERS * [("worker", run_worker)],
        *ENDPOINTS * [("endpoint", run_endpoint)],
    ]
    gateway = _started(run_gateway, place)
    parties = [_started(target, place) for _, target in kinds]
    seen, moved_at = -1, time.monotonic()
    try:
        while (done := _ended(engine)) < jobs:
            if done != seen:
                seen, moved_at = done, time.monotonic()
            assert time.monotonic() < moved_at + PATIENCE_S, f"{jobs - done} jobs stand still"
            if killed.total() < kills and done >= (killed.total() + 1) * every:
                at = chance.randrange(len(kinds))
                _stop(parties[at])
                parties[at] = _started(kinds[at][1], place)
                killed[kinds[at][0]] += 1
            time.sleep(LOOK_S)
        time.sleep(PATIENCE_LATE_S)  # for what is said too late
    finally:
        for each in (*parties, gateway):
            _stop(each)
    return killed


PATIENCE_LATE_S = 5.0


def _ended(engine: AnyEngine) -> int:
    """How many have ended. A look waits for the one writer of a file, so it asks again."""
    for _ in range(LOOKS_MAX):
        try:
            return int(str(rows(engine, "SELECT count(*) AS n FROM {finished_jobs}")[0]["n"]))
        except Busy:
            continue
    raise AssertionError("the file stays locked")


def _started(target: Callable[[Place], None], place: Place) -> Fork:
    party = context.Process(target=target, args=(place,), daemon=True)
    party.start()
    return party


def _stop(party: Fork) -> None:
    party.kill()
    party.join(PATIENCE_S)


# --- judging ---------------------------------------------------------------------------------------


def _judge(engine: AnyEngine, place: Place, jobs: int, found: Found) -> None:
    wrong = found.wrong
    # Of each job: what may have come of a reply, or of an answer of which the endpoint was killed before it heard.
    possible: dict[str, set[str]] = defaultdict(set)
    taken: dict[str, list[str]] = defaultdict(list)  # answers of success that were told to count
    of_attempts: Counter[tuple[str, int]] = Counter()
    told: Counter[str] = Counter()
    for line in place.log.read_text().splitlines():
        job, attempt, what, *rest = json.loads(line)
        if what == "made":
            possible[job].add(rest[1])
            continue
        verb, token, status, reason = rest
        told[f"{verb} {status} {reason}".strip()] += 1
        if status in (200, 401, 409):
            possible[job].discard(token)
        if status == 200:
            of_attempts[job, attempt] += 1
            if verb == "succeed":
                taken[job].append(token)
    wrong += [f"attempt {key} was answered {count} times" for key, count in of_attempts.items() if count > 1]
    ended = rows(engine, "SELECT id, state, attempt, result FROM {finished_jobs}")
    kinds = rows(engine, "SELECT kind, count(*) AS n FROM {job_events} GROUP BY kind ORDER BY kind")
    for each in ended:
        wrong += _wrong_of(each, possible[str(each["id"])], taken[str(each["id"])])
    numbers = {_result(each).get("number") for each in ended}
    if len(ended) != jobs or numbers != set(range(jobs)):
        wrong.append(f"{len(ended)} jobs have ended, {len(numbers)} different ones")
    wrong += _twice(engine)
    found.facts = {
        "jobs": len(ended),
        "kills": found.kills,
        "attempts": sum(int(str(each["attempt"])) for each in ended),
        "ended by a callback": sum(len(each) for each in taken.values()),
        "told to endpoints": dict(sorted(told.items())),
        "timeline": {str(each["kind"]): int(str(each["n"])) for each in kinds},
        "took_s": found.took_s,
    }


def _wrong_of(job: Any, possible: set[str], taken: list[str]) -> list[str]:
    token = _result(job).get("token")
    if job["state"] != "succeeded":
        return [f"job {job['id']} is {job['state']}"]
    if len(taken) > 1:
        return [f"job {job['id']}: {len(taken)} answers were told to count"]
    if taken and token != taken[0]:
        return [f"job {job['id']}: the answer {taken[0]} was told to count, and it ended with {token}"]
    if not taken and token not in possible:
        return [f"job {job['id']} ended with {token}, which was refused, or which nobody made"]
    return []


def _twice(engine: AnyEngine) -> list[str]:
    """Jobs whose end stands twice in their timeline."""
    text = (
        "SELECT job_id, count(*) AS n FROM {job_events} WHERE kind IN ('succeeded', 'failed', 'cancelled') "
        "GROUP BY job_id HAVING count(*) > 1"
    )
    return [f"job {each['job_id']} has ended {each['n']} times" for each in rows(engine, text)]


def _result(job: Any) -> dict[str, Any]:
    found = job["result"]
    plain = json.loads(found) if isinstance(found, str) else found
    return plain if isinstance(plain, dict) else {}
