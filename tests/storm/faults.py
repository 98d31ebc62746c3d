"""Faults that strike processes, whatever the database: killed, or stopped for longer than their lease."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from tests.storm.plan import LEASE_S
from tests.storm.scene import Scene, Silence, until
from tests.storm.team import is_stopped


def kill_worker(scene: Scene[Any]) -> bool:
    with scene.team.one(scene.chance, is_worker=True) as victim:
        if victim is None:
            return False
        at = time.time()
        if not scene.team.kill(victim):
            return False
        scene.silences.append(Silence(victim.post.name, at, "killed"))
        return True


def kill_client(scene: Scene[Any]) -> bool:
    with scene.team.one(scene.chance, is_worker=False) as victim:
        return victim is not None and scene.team.kill(victim)


def stop_worker(scene: Scene[Any], all_stand: Callable[[], bool] | None = None) -> bool:
    """SIGSTOP for longer than the lease, so that others take over what it runs, then SIGCONT.

    `all_stand` is asked meanwhile: whether the stopped one keeps all the others from working.
    """
    with scene.stops, scene.team.one(scene.chance, is_worker=True) as victim, ExitStack() as stack:
        if victim is None:
            return False
        os.kill(victim.pid, signal.SIGSTOP)
        at = time.time()
        try:
            if not until(lambda: is_stopped(victim.pid), 1.0):
                return False
            if all_stand is not None and all_stand():
                stack.enter_context(scene.trouble("stopped with a lock in its hands"))
            length_s = LEASE_S * (1.3 + scene.chance.random() / 2)
            time.sleep(max(0.0, length_s - (time.time() - at)))
            if time.time() - at < LEASE_S or not is_stopped(victim.pid):
                return False
        finally:
            os.kill(victim.pid, signal.SIGCONT)
        scene.silences.append(Silence(victim.post.name, at, "stopped"))
        return True
