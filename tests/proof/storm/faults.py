"""Faults that strike processes, whatever the database: killed, or stopped for longer than their lease."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from fencerow.errors import DatabaseError
from tests.kit.stopping import is_stopped
from tests.proof.storm import ledger
from tests.proof.storm.orders import BlockLoop, TakeDescriptors, tell
from tests.proof.storm.plan import LEASE_S, LIMIT_S
from tests.proof.storm.scene import Scene, Silence, until
from tests.proof.storm.team import Member

TAKEN_OVER_S = 20.0  # a worker that comes late after that has lost nothing, and the fault proves nothing
INSIDE_S = 3.0  # how long a fault waits until a worker is where it is to be struck

# Whether a worker was declared dead, and all that it held was taken back.
GIVEN_UP = """
SELECT count(*) FROM fencerow.workers AS worker
WHERE worker.name = '{}' AND worker.state = 'dead'
  AND NOT EXISTS (SELECT 1 FROM fencerow.jobs AS job WHERE job.holder = worker.id)
"""


# Whether a worker holds jobs, alive or not.
LEFT = """
SELECT count(*) FROM fencerow.jobs AS job JOIN fencerow.workers AS worker ON worker.id = job.holder
WHERE worker.name = '{}' AND job.state = 'running'
"""


@contextmanager
def a_worker(
    scene: Scene[Any], fit: Callable[[Member], bool], within_s: float = INSIDE_S
) -> Iterator[Member | None]:
    """A worker that fits, as soon as there is one; None if there is none for so long."""
    until_s = time.monotonic() + within_s
    while True:
        with scene.team.one(scene.chance, is_worker=True, fit=fit) as victim:
            if victim is not None or time.monotonic() > until_s:
                yield victim
                return
        time.sleep(0.01)


def kill_worker(scene: Scene[Any]) -> bool:
    """One that has come to its work, if it can be: on a busy machine most of the others have only just started.

    It struck if jobs were left behind, which others have to take back; else another is killed besides.
    """
    with a_worker(scene, Member.has_begun) as begun, ExitStack() as stack:
        victim = begun or stack.enter_context(scene.team.one(scene.chance, is_worker=True))
        if victim is None:
            return False
        at = time.time()
        if not scene.team.kill(victim):
            return False
        scene.silences.append(Silence(victim.post.name, at, "killed"))
        return _asked(scene, LEFT, victim)


def kill_client(scene: Scene[Any]) -> bool:
    with scene.team.one(scene.chance, is_worker=False) as victim:
        return victim is not None and scene.team.kill(victim)


def stop_inside(scene: Scene[Any], all_stand: Callable[[], bool] | None = None) -> bool:
    """SIGSTOP while a guarded `job.transaction()` is open: its locks must not keep the job from others."""
    with scene.stops, a_worker(scene, _is_inside) as victim:
        return victim is not None and stopped(scene, victim, all_stand, still=victim.post.is_inside)


def block_loop(scene: Scene[Any]) -> bool:
    """The event loop of a worker stands still for longer than a lease: its threads go on, and renew."""
    with a_worker(scene, Member.is_rested, LIMIT_S) as victim:
        if victim is None:
            return False
        seconds = LEASE_S * (1.1 + scene.chance.random() / 2)
        try:
            with victim.ordering:
                away_ms = tell(victim.control, BlockLoop(seconds), within_s=3 * LEASE_S + 2.0)
        finally:
            victim.stood_until = time.monotonic()
        return away_ms is not None and away_ms >= seconds * 1000


def take_descriptors(scene: Scene[Any]) -> bool:
    """A worker can open nothing for a while: no file, no connection, no child."""
    with scene.team.one(scene.chance, is_worker=True) as victim:
        if victim is None:
            return False
        order = TakeDescriptors(LEASE_S * scene.chance.uniform(0.2, 0.7))
        with victim.ordering:
            return tell(victim.control, order, within_s=LEASE_S + 2.0) is not None


def stop_worker(scene: Scene[Any], all_stand: Callable[[], bool] | None = None) -> bool:
    """SIGSTOP for longer than the lease, so that others take over what it runs, then SIGCONT.

    `all_stand` is asked meanwhile: whether the stopped one keeps all the others from working.
    """
    with scene.stops, a_worker(scene, Member.is_rested, LIMIT_S) as victim:
        return victim is not None and stopped(scene, victim, all_stand)


def _is_inside(member: Member) -> bool:
    return member.is_rested() and member.post.is_inside()


def stopped(
    scene: Scene[Any],
    victim: Member,
    all_stand: Callable[[], bool] | None,
    still: Callable[[], bool] = lambda: True,
) -> bool:
    """Stop it for longer than its lease; whether it stood so long, and stood where it should: `still`."""
    with ExitStack() as stack:
        os.kill(victim.pid, signal.SIGSTOP)
        at = time.time()
        try:
            if not until(lambda: is_stopped(victim.pid), 1.0) or not still():
                return False
            if all_stand is not None and all_stand():
                stack.enter_context(scene.trouble("stopped with a lock in its hands"))
            length_s = LEASE_S * (1.3 + scene.chance.random() / 2)
            time.sleep(max(0.0, length_s - (time.time() - at)))
            if victim.post.bug:
                # A control proves something only if others have taken over: however long that takes a busy machine.
                until(lambda: _asked(scene, GIVEN_UP, victim), TAKEN_OVER_S)
            if time.time() - at < LEASE_S or not is_stopped(victim.pid):
                return False
        finally:
            until_s = time.time()
            os.kill(victim.pid, signal.SIGCONT)
            victim.stood_until = time.monotonic()
        scene.silences.append(Silence(victim.post.name, at, "stopped", until_s))
        return True


def _asked(scene: Scene[Any], question: str, victim: Member) -> bool:
    """Whether the database counts anything; no, where it cannot say."""
    try:
        ((count,),) = ledger.ask(scene.ground.engine, question.format(victim.post.name))
    except DatabaseError:
        return False  # an outage, or stopped with a lock in its hands, it keeps us from asking
    return int(str(count)) > 0
