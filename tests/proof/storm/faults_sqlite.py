"""Faults of a SQLite file: strangers that lock it, a full disk, a process with a wrong clock, a disk that fails."""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
import subprocess
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from fencerow.errors import FencerowError, StorageFull
from tests.kit.stopping import is_locked
from tests.proof.storm import faults, ledger
from tests.proof.storm.ground import SqliteGround
from tests.proof.storm.orders import SetClock, tell
from tests.proof.storm.plan import HOUR_S, LEASE_S, OUTAGE_S
from tests.proof.storm.scene import AN_HOUR, Kind, Scene, Silence, until
from tests.proof.storm.team import Member

STRACE = shutil.which("strace")
# A tracer ends with the storm, also where that is killed: the worker that it traces lives on.
LEASH = [leash, "--pdeathsig", "TERM"] if (leash := shutil.which("setpriv")) else []
INJECT_S = 4.0
ROOM_BYTES = 150_000  # that are left where there is little room: for the journal of a few jobs
LITTLE_ROOM_S = 8.0
TURN_S = 10.0  # how long a fault that strikes everybody waits for the one before it

On = Scene[SqliteGround]


def stop_worker(scene: On) -> bool:
    """One that is stopped with a lock of the file in its hands stops everybody: nobody can take over meanwhile."""
    return faults.stop_worker(scene, all_stand=lambda: is_locked(scene.ground.path))


def stop_inside(scene: On) -> bool:
    return faults.stop_inside(scene, all_stand=lambda: is_locked(scene.ground.path))


def lock_file(scene: On) -> bool:
    """A stranger holds the write lock, as a backup or a shell left open does."""
    return _locked(scene, 0.3 + scene.chance.random())


def stay_away(scene: On) -> bool:
    """The file is locked for longer than the time limit of jobs: their outcomes wait, and must not be judged before."""
    return _locked(scene, OUTAGE_S)


def _locked(scene: On, hold_s: float) -> bool:
    if not scene.ground.whole.acquire(timeout=TURN_S):
        return False
    try:
        with (
            scene.trouble("file locked"),
            contextlib.closing(
                sqlite3.connect(scene.ground.path, timeout=3, isolation_level=None)
            ) as stranger,
        ):
            try:
                stranger.execute("BEGIN EXCLUSIVE")
            except sqlite3.OperationalError:
                return False
            time.sleep(hold_s)
            stranger.execute("ROLLBACK")
            return True
    finally:
        scene.ground.whole.release()


def fill_disk(scene: On) -> bool:
    """No space for a while; seen by a submit of our own, which is told so and stores nothing."""
    disk = scene.ground.disk
    if disk is None or not scene.ground.whole.acquire(timeout=TURN_S):
        return False
    try:
        with scene.trouble("disk full"):
            disk.fill()
            try:
                seen = until(lambda: _is_full(scene), 4.0)
                time.sleep(0.5)
            finally:
                disk.make_room()
            return seen
    finally:
        scene.ground.whole.release()


def leave_little_room(scene: On) -> bool:
    """Room for little at once, for a while: what does not fit is tried again smaller, and everything goes on."""
    disk = scene.ground.disk
    if disk is None or not scene.ground.whole.acquire(timeout=TURN_S):
        return False
    try:
        with scene.trouble("little room on the disk"):
            disk.fill(leave_bytes=ROOM_BYTES)
            try:
                seen = until(lambda: _is_full(scene), 4.0)
                before = _ended(scene)
                return seen and until(lambda: _ended(scene) > before, LITTLE_ROOM_S)
            finally:
                disk.make_room()
    finally:
        scene.ground.whole.release()


def jump_clock(scene: On) -> bool:
    """The clock of one process is wrong by up to three leases for a while, as after a suspend."""
    with scene.team.one(scene.chance, is_worker=True) as victim, scene.trouble("a clock jumped"):
        if victim is None:
            return False
        offset_us = round(scene.chance.uniform(-3, 3) * LEASE_S * 1_000_000)
        seen = []
        for wanted_us in (offset_us, 0):
            seen.append(_obeyed(victim, wanted_us))
            time.sleep(0.3 + scene.chance.random() * LEASE_S)
        return all(seen)


def jump_an_hour(scene: On) -> bool:
    """The clock of the host is an hour wrong for longer than a lease: that of every process, also of new ones."""
    if not scene.ground.whole.acquire(timeout=TURN_S):
        return False
    try:
        with scene.trouble(AN_HOUR):
            wanted_us = round(scene.chance.choice([-HOUR_S, HOUR_S]) * 1_000_000)
            try:
                seen = _everybody_obeyed(scene, wanted_us)
                time.sleep(LEASE_S * scene.chance.uniform(0.5, 2.0))
            finally:
                back = _everybody_obeyed(scene, 0)
            return seen and back
    finally:
        scene.ground.whole.release()


def _everybody_obeyed(scene: On, wanted_us: int) -> bool:
    """Set the clock of all; whether most were seen to obey: one that is stopped or killed meanwhile cannot."""
    scene.ground.set_clock(wanted_us)
    members = scene.team.set_clock(wanted_us)
    with ThreadPoolExecutor(len(members)) as pool:
        answers = list(pool.map(lambda member: _obeyed(member, wanted_us), members))
    return sum(answers) * 2 > len(answers)


def _obeyed(member: Member, wanted_us: int) -> bool:
    with member.ordering:
        said_us = tell(member.control, SetClock(wanted_us))
    return said_us is not None and abs(said_us - time.time() * 1_000_000 - wanted_us) < 500_000


def fail_write(scene: On) -> bool:
    """One write or sync of a worker fails with an error of the disk, as the kernel would report it."""
    call = scene.chance.choice(["pwrite64", "fdatasync", "fsync", "ftruncate"])
    error = scene.chance.choice(["EIO", "ENOSPC"])
    return _inject(scene, f"{call}:error={error}:when={1 + scene.chance.randrange(12)}", call)


def kill_in_write(scene: On) -> bool:
    """A worker is killed at the very moment of a write or sync."""
    call = scene.chance.choice(["pwrite64", "fdatasync", "fsync", "ftruncate"])
    return _inject(scene, f"{call}:signal=KILL:when={1 + scene.chance.randrange(12)}", call)


KINDS: Mapping[str, Kind[SqliteGround]] = {
    "worker killed": Kind(56, faults.kill_worker),
    "worker stopped beyond its lease": Kind(8, stop_worker),
    "worker stopped inside a guarded transaction": Kind(3, stop_inside),
    "event loop of a worker blocked": Kind(4, faults.block_loop),
    "no descriptors left to a worker": Kind(4, faults.take_descriptors),
    "client killed": Kind(14, faults.kill_client),
    "clock of a process jumped": Kind(4, jump_clock, strikes_all=True),
    "file locked by a stranger": Kind(5, lock_file, strikes_all=True),
    "clock jumped an hour": Kind(2, jump_an_hour, strikes_all=True),
    "file locked for longer than a deadline": Kind(1, stay_away, strikes_all=True),
    "disk full": Kind(1, fill_disk, strikes_all=True),
    "little room on the disk": Kind(2, leave_little_room, strikes_all=True),
    **(
        {"worker killed in a write": Kind(8, kill_in_write), "write failed": Kind(8, fail_write)}
        if STRACE
        else {}
    ),
}


def _is_full(scene: On) -> bool:
    """Whether a write of our own meets it."""
    try:
        with scene.ground.engine.session() as session:
            session.connection.execute("CREATE TABLE IF NOT EXISTS filler (bytes BLOB)")
            session.connection.execute("INSERT INTO filler VALUES (randomblob(200000))")
    except StorageFull:
        return True
    except FencerowError:
        return False
    return False


def _ended(scene: On) -> int:
    """How many jobs have ended; -1 where nobody can say."""
    try:
        return int(str(ledger.ask(scene.ground.engine, "SELECT count(*) FROM fencerow.finished_jobs")[0][0]))
    except (FencerowError, sqlite3.Error):
        return -1


def _inject(scene: On, what: str, call: str) -> bool:
    """Let strace change one system call of a worker; counted when it was seen: in its report, or by the death."""
    with scene.team.one(scene.chance, is_worker=True) as victim:
        if victim is None or STRACE is None:
            return False
        report = victim.post.folder / f"{victim.post.name}.strace"
        options = ["-qq", "-f", "-p", str(victim.pid), "-o", str(report), "-e", f"trace={call}"]
        at = time.time()

        def struck() -> bool:
            """It lives on until the call comes: it is silent since it was last seen alive, not since the strike."""
            nonlocal at
            now = time.time()
            if not victim.process.is_alive():
                return True
            at = now
            return _says_injected(report)

        with subprocess.Popen(
            [*LEASH, STRACE, *options, "-e", f"inject={what}"], stderr=subprocess.DEVNULL
        ) as tracer:
            try:
                seen = until(struck, INJECT_S)
            finally:
                _end(tracer)
        if victim.process.is_alive():
            # The deed may have been done by the tracer just before it was let go, and be felt only now.
            victim.condemned = victim.condemned or "KILL" in what
            return seen and "KILL" not in what
        if not scene.team.kill(victim):
            return False
        scene.silences.append(Silence(victim.post.name, at, "killed in a write"))
        return seen


def _end(tracer: subprocess.Popen[bytes]) -> None:
    """Let go of the worker. One whose worker died under it may not hear of anything any more."""
    tracer.terminate()
    try:
        tracer.wait(1.0)
    except subprocess.TimeoutExpired:
        tracer.kill()
        tracer.wait()


def _says_injected(report: Path) -> bool:
    return report.exists() and "INJECTED" in report.read_text(errors="replace")
