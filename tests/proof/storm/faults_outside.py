"""Faults of the store of large payloads: it hangs for all, and for workers that are killed or stopped meanwhile."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from tests.kit.stopping import is_locked
from tests.proof.storm import faults
from tests.proof.storm.ground import SqliteGround
from tests.proof.storm.outside import How, StormStore
from tests.proof.storm.plan import STORE_S
from tests.proof.storm.scene import Kind, Scene, Silence, until
from tests.proof.storm.team import Member

TURN_S = 10.0
MET_S = 8.0  # how long a fault waits until a worker calls its store: not every job has a large payload
HOWS: tuple[How, ...] = ("hang", "late", "lost", "fail")


def trouble_store(scene: Scene[Any]) -> bool:
    """For all, for shorter or longer than anybody waits for it."""
    if not scene.store_turn.acquire(timeout=TURN_S):
        return False
    try:
        store = StormStore(scene.team.folder, "the storm")
        before = store.all_met()
        with store.weather(scene.chance.choice(HOWS)):
            time.sleep(STORE_S * scene.chance.uniform(0.3, 2.5))
        return store.all_met() > before
    finally:
        scene.store_turn.release()


def kill_waiting(scene: Scene[Any]) -> bool:
    """A worker is killed while a call of its store hangs, or has been made and is not answered."""
    return _waiting(scene, lambda victim: _killed(scene, victim))


def stop_waiting(scene: Scene[Any]) -> bool:
    """A worker is stopped then, beyond its lease: its call is made, and answered, after others have taken over."""
    ground = scene.ground
    all_stand = (lambda: is_locked(ground.path)) if isinstance(ground, SqliteGround) else None
    with scene.stops:
        return _waiting(scene, lambda victim: faults.stopped(scene, victim, all_stand), Member.is_rested)


def _waiting(
    scene: Scene[Any], strike: Callable[[Member], bool], fit: Callable[[Member], bool] = Member.has_begun
) -> bool:
    with faults.a_worker(scene, fit) as victim:
        if victim is None:
            return False
        store = StormStore(scene.team.folder, victim.post.name)
        before = store.met()
        how: How = "late" if scene.chance.random() < 0.5 else "hang"
        with store.weather(how, whose=victim.post.name):
            return until(lambda: store.met() > before, MET_S) and strike(victim)


def _killed(scene: Scene[Any], victim: Member) -> bool:
    at = time.time()
    if not scene.team.kill(victim):
        return False
    scene.silences.append(Silence(victim.post.name, at, "killed"))
    return True


KINDS: Mapping[str, Kind[Any]] = {
    "store of payloads in trouble": Kind(6, trouble_store),
    "worker killed while its store hangs": Kind(6, kill_waiting),
    "worker stopped while its store hangs": Kind(2, stop_waiting),
}
