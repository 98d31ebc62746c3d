"""One move with workers on both sides, killed again and again; then each effect is counted."""

from __future__ import annotations

import random
import sqlite3
import time
from collections import Counter
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import psycopg

from tests.kit.forking import Fork, context
from tests.kit.pace import PATIENCE_S
from tests.moving.campaign.load import bring, make_effects, submit_all, work

LOOK_S = 0.1
STEPS_AT_FIRST = 5
CLOSED_BY = 2  # so many kills the new database knows of the move


@dataclass
class Found:
    """What was counted."""

    jobs: int
    kills: dict[str, int] = field(default_factory=dict)  # by the step at which the move was
    seconds: float = 0.0  # of the moves, with all kills
    in_file: int = 0  # effects
    in_server: int = 0
    fires: int = 0  # of the schedule, that made a job
    wrong: list[str] = field(default_factory=list)


def play(
    folder: Path,
    url: str,
    *,
    jobs: int,
    kills: int,
    seed: int,
    unfenced: bool = False,
    unwatched: bool = False,
) -> Found:
    """Submit, put a worker on each side, move with so many kills, and wait until nothing is left.

    `unfenced`: nothing closes the file. `unwatched`: and nobody compares what came, which would find it.
    """
    unfenced = unfenced or unwatched
    chance, found = random.Random(seed), Found(jobs)
    file = folder / "jobs.db"
    ids = submit_all(f"sqlite:///{file}", jobs)
    make_effects(url)
    ends = {side: folder / side for side in ("file", "server")}
    workers = [_worker(f"sqlite:///{file}", ends["file"])]
    try:
        _until_under_way(file, jobs // 50)
        begun = time.monotonic()
        while _moved(
            folder,
            file,
            url,
            chance,
            found,
            kill=sum(found.kills.values()) < kills,
            unfenced=unfenced,
            unwatched=unwatched,
        ):
            if (
                sum(found.kills.values()) == CLOSED_BY
            ):  # before that it would fire the schedule of its own accord
                workers.append(_worker(url, ends["server"]))
        found.seconds = round(time.monotonic() - begun, 1)
        if unwatched:
            _until_twice(file, url)
        elif not found.wrong:
            _until_idle(url)
        if not unfenced:
            workers[0].join(PATIENCE_S)
            if (said := ends["file"].read_text()) != "moved":
                found.wrong.append(f"the worker of the file ended so: {said}")
    finally:
        for each in workers:
            each.kill()
            each.join()
    _judge(file, url, ids, found)
    return found


def _worker(url: str, ended: Path) -> Fork:
    made = context.Process(target=work, args=(url, ended), daemon=True)
    made.start()
    return made


def _moved(
    folder: Path,
    file: Path,
    url: str,
    chance: random.Random,
    found: Found,
    *,
    kill: bool,
    unfenced: bool,
    unwatched: bool,
) -> bool:
    """Let the move run, to its end or to a kill; whether it was killed."""
    steps = folder / "steps"
    # The first steps are few: each is the last one of a move once, before chance decides.
    after = (1 if sum(found.kills.values()) < STEPS_AT_FIRST else chance.randint(1, 9)) if kill else None
    options = (str(file), url, after, chance.uniform(0, 0.03), steps, unfenced, unwatched)
    mover = context.Process(target=bring, args=options, daemon=True)
    mover.start()
    mover.join(PATIENCE_S)
    at = steps.read_text() if steps.exists() else "before its first step"
    if mover.exitcode == 0:
        return False
    if unfenced and mover.exitcode == 1:
        found.wrong.append(f"what changed meanwhile was found at the end ({at})")
        return False
    assert mover.exitcode == -9, f"the move ended with {mover.exitcode} at {at}"
    found.kills[at] = found.kills.get(at, 0) + 1
    return True


def _until_under_way(file: Path, effects: int) -> None:
    """Until the worker of the file has run so many jobs, and its schedule has fired."""
    by = time.monotonic() + PATIENCE_S
    with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as connection:
        asked = (
            "SELECT (SELECT count(*) FROM effects) >= ? AND EXISTS (SELECT 1 FROM fencerow_schedule_ticks)"
        )
        while connection.execute(asked, (effects,)).fetchone() != (1,):
            assert time.monotonic() < by, "the worker of the file does nothing"
            time.sleep(LOOK_S)


def _until_idle(url: str) -> None:
    """Until the schedule has fired here too and is paused, and no job is left."""
    seen, by = None, time.monotonic() + PATIENCE_S
    with psycopg.connect(url, autocommit=True) as connection:
        since = "tick.at > move.since"
        newest = f"SELECT count(*) FROM fencerow.schedule_ticks AS tick, fencerow.moves AS move WHERE {since}"
        while connection.execute(f"{newest} + INTERVAL '1 second'").fetchone() == (0,):
            assert time.monotonic() < by, "the schedule does not fire any more"
            time.sleep(LOOK_S)
        connection.execute(
            "UPDATE fencerow.schedules SET paused_at = now(), paused_by = 'campaign', version = version + 1"
        )
        while (left := connection.execute("SELECT count(*) FROM fencerow.jobs").fetchone()) != (0,):
            if left != seen:
                seen, by = left, time.monotonic() + PATIENCE_S
            assert time.monotonic() < by, f"{left} jobs are left, and none ends"
            time.sleep(LOOK_S)


def _until_twice(file: Path, url: str) -> None:
    """Until a job has run on both sides."""
    by = time.monotonic() + PATIENCE_S
    while not set(_effects_here(file)) & set(_effects_there(url)):
        assert time.monotonic() < by, "no job runs twice"
        time.sleep(LOOK_S)


def _effects_here(file: Path) -> list[str]:
    with closing(sqlite3.connect(file)) as connection:
        return [row[0] for row in connection.execute("SELECT job FROM effects")]


def _effects_there(url: str) -> list[str]:
    with psycopg.connect(url) as connection:
        return [str(row[0]) for row in connection.execute("SELECT job FROM fencerow.effects")]


def _judge(file: Path, url: str, ids: list[str], found: Found) -> None:
    here, there = _effects_here(file), _effects_there(url)
    with psycopg.connect(url) as connection:
        fired = "SELECT job_id FROM fencerow.schedule_ticks WHERE job_id IS NOT NULL"
        ticks = [str(row[0]) for row in connection.execute(fired)]
    found.in_file, found.in_server, found.fires = len(here), len(there), len(ticks)
    times = Counter(here + there)
    wanted = set(ids) | set(ticks)
    found.wrong += [f"{count} times: {job}" for job, count in times.items() if count > 1]
    found.wrong += [f"never: {job}" for job in sorted(wanted - set(times))]
    found.wrong += [f"from nowhere: {job}" for job in sorted(set(times) - wanted)]
