"""One storm: jobs go in, faults strike, all calms down, and the books are checked."""

from __future__ import annotations

import math
import random
import sqlite3
import threading
import time
import traceback
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import psycopg

from fencerow.errors import DatabaseError, FencerowError
from fencerow.operators import looking, queues
from tests.proof.storm import faults_outside, faults_postgres, faults_sqlite, ledger
from tests.proof.storm.books import Books, reckon
from tests.proof.storm.bugs import spoil
from tests.proof.storm.ground import Ground, PostgresGround, SqliteGround, postgres_ground, sqlite_ground
from tests.proof.storm.outside import StormStore, keep_sweeping, left_outside
from tests.proof.storm.pace import pace_of
from tests.proof.storm.plan import PAUSED, STORE_ORPHAN_S, Plan, deck
from tests.proof.storm.post import HISTORY
from tests.proof.storm.recovery import Recovery, recoveries
from tests.proof.storm.scene import Kind, Scene, Tally, Trouble
from tests.proof.storm.team import Team

AT_ONCE = 6  # faults under way together
AHEAD = 80  # jobs that may be submitted before the first fault
AGAIN = 5  # more for each fault that found nothing to strike: some need a job at a certain place
REFUSED_SHARE = 0.15  # of the submits: keys that were given already, and what an outage refused
CALM_S = 90.0
LEFT = """
SELECT job.id, job.name, job.state, job.gate, job.attempt, job.suspect, job.holder, job.run_at, job.submitted_at,
       job.cancel_requested_at
FROM fencerow.jobs AS job ORDER BY job.id LIMIT 20
"""
LOOK_S, LATE_S = 0.05, 0.12
UNSEEN_FACTOR = 4  # a storm in which most faults miss has lost its way


@dataclass
class Report:
    """What a storm came to."""

    kind: str
    plan: Plan
    tally: Tally
    books: Books
    recoveries: list[Recovery]
    left_out: dict[str, str]  # kinds that are not possible here, and why
    missing: list[str]  # kinds that were never seen to strike
    jobs: int
    storm_s: float
    calm_s: float
    ended_blocked: int  # workers that ended their process because a handler blocked its loop

    @property
    def confirmed(self) -> int:
        return self.tally.confirmed.total()


def weather(kind: str, plan: Plan, folder: Path) -> Report:
    """Let one storm pass over a fresh database of this kind; `folder` gets the records and logs of its processes."""
    with ExitStack() as stack:
        ground: PostgresGround | SqliteGround
        if kind == "postgres":
            ground = stack.enter_context(postgres_ground(plan.disk_mib))
            return _weather(ground, plan, folder, faults_postgres.KINDS)
        ground = stack.enter_context(sqlite_ground(plan.disk_mib))
        return _weather(ground, plan, folder, faults_sqlite.KINDS)


def _weather(ground: Any, plan: Plan, folder: Path, kinds: Mapping[str, Kind[Any]]) -> Report:
    left_out = {}
    if ground.disk is None:
        for name in ("disk full", "little room on the disk"):
            if name in kinds:
                left_out[name] = "no small disk can be mounted here"
        kinds = {name: kind for name, kind in kinds.items() if name not in left_out}
    kinds = {**kinds, **faults_outside.KINDS}
    if plan.shares is not None:
        kinds = {
            name: replace(kinds[name], share=share) for name, share in plan.shares.items() if name in kinds
        }
    # Before workers that cannot begin are started again and again; and the storm's own sweep lacks the guard, too.
    spoil(ground.engine, plan.bug)
    team = Team(folder, ground.url, plan)
    scene = Scene(ground, team, random.Random(plan.seed))
    tally = Tally()
    started = time.monotonic()
    try:
        for number in range(plan.workers):
            team.start(is_worker=True, spared=number == 0)
        for slot in range(plan.clients):
            team.start(is_worker=False, slot=slot)
        watch = threading.Thread(target=_watch_machine, args=(scene,), name="storm-watch", daemon=True)
        watch.start()
        store = StormStore(folder, "the sweep", age_s=1.0 if plan.bug else STORE_ORPHAN_S)
        sweep = (ground.engine, store, scene.over)
        threading.Thread(target=keep_sweeping, args=sweep, name="storm-sweep", daemon=True).start()
        _gather(scene)
        _blow(scene, plan, kinds, tally)
        blown_s = time.monotonic() - started
        if plan.to_the_end:
            _calm(scene, plan, tally)
        tally.errors += [f"{name} did not stop when asked" for name in team.end(workers=True, within_s=20)]
        calm_s = time.monotonic() - started - blown_s
        tally.errors += team.died
    finally:
        scene.over.set()
        team.close()
    books = reckon(ground.engine, folder)
    if plan.to_the_end:
        left = left_outside(ground.engine, folder)
        books.refuse("nothing is left outside", sorted({*left} - books.outside), len(left))
    pace = pace_of(folder / HISTORY, team.spared_pids)
    found = recoveries(ground.engine, scene.silences, scene.troubles, pace)
    books.refuse(
        "what the silent held is back in time", (str(each) for each in found if each.is_late), len(found)
    )
    missing = [name for name in kinds if not tally.confirmed[name]]
    return Report(
        ground.kind,
        plan,
        tally,
        books,
        found,
        left_out,
        missing,
        books.outcomes.total(),
        blown_s,
        calm_s,
        team.ended_blocked,
    )


def _watch_machine(scene: Scene[Any]) -> None:
    """Note when the machine is so busy that a thread which only sleeps comes late: then everything comes late."""
    slept_at = time.time()
    while not scene.over.wait(LOOK_S):
        late_s = time.time() - slept_at - LOOK_S
        if late_s > LATE_S:
            scene.troubles.append(Trouble("the machine was overloaded", slept_at, time.time()))
        slept_at = time.time()


def _gather(scene: Scene[Any]) -> None:
    """Wait until jobs come in and are run: a fault that strikes before that strikes nothing."""
    scene.team.board.allow(AHEAD)
    coming = Progress()
    while (moves := _moves(scene.ground)) < AHEAD:
        coming.look(AHEAD - moves, "hardly any job was submitted and claimed")
        scene.team.replace_dead()
        time.sleep(0.1)


def _blow(scene: Scene[Any], plan: Plan, kinds: Mapping[str, Kind[Any]], tally: Tally) -> None:
    """Strike until enough faults were confirmed; the clients are let go on at the same pace."""
    shares = {name: kind.share for name, kind in kinds.items()}
    wide = {name for name, kind in kinds.items() if kind.strikes_all}
    cards = deck(shares, wide, plan.faults, scene.chance)
    cards.reverse()  # taken from the end; one that missed goes to the other
    lock = threading.Lock()
    under_way: dict[Future[None], str] = {}

    def strike(name: str) -> None:
        seen = False
        try:
            seen = kinds[name].strike(scene)
        except (psycopg.Error, FencerowError, sqlite3.Error):
            # An outage strikes the hands of the one who makes it, too: then it did not see its fault strike.
            tally.unseen["(its own connection broke)"] += 1
        except Exception:
            tally.errors.append(f"{name}: {traceback.format_exc()}")
        with lock:
            (tally.confirmed if seen else tally.unseen)[name] += 1
            if not seen:
                cards.insert(0, name)

    with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="storm-fault") as pool:
        while (cards or under_way) and tally.unseen.total() < UNSEEN_FACTOR * plan.faults:
            with lock:
                progress = min(1.0, tally.confirmed.total() / plan.faults)
            wanted = round(plan.jobs * (1 + REFUSED_SHARE) * progress)
            scene.team.board.allow(AHEAD + wanted + AGAIN * tally.unseen.total())
            scene.team.replace_dead()
            under_way = {future: name for future, name in under_way.items() if not future.done()}
            if cards and len(under_way) < AT_ONCE:
                with lock:
                    name = cards.pop()
                under_way[pool.submit(strike, name)] = name
            time.sleep(plan.gap_s * (0.5 + scene.chance.random()))


def _calm(scene: Scene[Any], plan: Plan, tally: Tally) -> None:
    """No more faults: everything is submitted, and everything ends."""
    storing = Progress()
    while (stored := _stored(scene.ground)) < plan.jobs:
        storing.look(plan.jobs - stored, f"only {stored} jobs were stored")
        scene.team.board.allow(scene.team.board.taken() + plan.jobs - stored)
        scene.team.replace_dead()
        time.sleep(0.2)
    scene.team.board.allow(0)
    late = scene.team.end(workers=False, within_s=45)
    scene.ground.engine.run(queues.resume_queue(PAUSED))  # who paused it may have been killed
    ending = Progress()
    while (left := _live(scene.ground)) > 0:
        ending.look(left, f"{left} jobs had not ended", scene.ground)
        scene.team.replace_dead()
        time.sleep(0.1)
    tally.errors += [f"{name} did not stop when asked" for name in late]


class Progress:
    """Becomes impatient when nothing has come nearer to its end for a while: how fast is the machine's affair."""

    def __init__(self) -> None:
        self._least: float = math.inf
        self._until = time.monotonic() + CALM_S

    def look(self, left: int, complaint: str, ground: Ground | None = None) -> None:
        """So much is left to do.

        Raises:
            AssertionError: for `CALM_S` it was never less. With a ground it says which jobs are left.
        """
        if left < self._least:
            self._least, self._until = left, time.monotonic() + CALM_S
        elif time.monotonic() > self._until:
            rest = [] if ground is None else ledger.ask(ground.engine, LEFT)
            raise AssertionError("\n".join([f"calm did not come: {complaint}", *map(str, rest)]))


def _stored(ground: Ground) -> int:
    return _count(ground, "SELECT count(*) FROM fencerow.all_jobs")


def _moves(ground: Ground) -> int:
    return _count(ground, "SELECT count(*) FROM fencerow.move")


def _count(ground: Ground, text: str) -> int:
    try:
        return int(str(ledger.ask(ground.engine, text)[0][0]))
    except DatabaseError:
        return 0  # it cannot say: ask again


def _live(ground: Ground) -> int:
    try:
        return sum(found.jobs for found in ground.engine.run(looking.counts()))
    except DatabaseError:
        return 1  # it cannot say: ask again
