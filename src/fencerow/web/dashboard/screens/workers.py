"""Workers: who is alive and what each holds; pause one, let it go on, let it end, take its jobs back."""

from __future__ import annotations

from typing import Any

from fencerow.core.model.worker import WorkerRecord
from fencerow.web.dashboard.roles import Role
from fencerow.web.dashboard.screen import Act, Action, Look, PressAnswer, Screen, Section

WORKERS_MAX = 500
JOBS_MAX = 200


async def workers(look: Look) -> dict[str, Any]:
    """One statement, and the clock where nobody has registered yet."""
    found = await look.client.workers.aregistered(limit=WORKERS_MAX)
    alive = [each for each in found if each.state == "alive"]
    return {
        "now_us": found[0].now_us if found else await look.now_us(),
        "alive": alive,
        "ended": [each for each in found if each.state != "alive"][:20],
        "silent": sum(is_silent(each) for each in alive),
        "left_s": left_s,
        "is_silent": is_silent,
    }


async def worker(look: Look) -> dict[str, Any]:
    """Three statements at most: the worker, found by its id, and the jobs that it holds."""
    inspected = await look.client.workers.ainspect(look.params["id"], jobs_max=JOBS_MAX)
    record = inspected.worker
    return {
        "now_us": record.now_us,
        "worker": record,
        "held": inspected.jobs,
        "left_s": left_s(record),
        "is_silent": is_silent(record),
    }


def left_s(worker: WorkerRecord) -> float:
    """How many seconds of its lease are left."""
    return (worker.lease_until_us - worker.now_us) / 1e6


def is_silent(worker: WorkerRecord) -> bool:
    """Whether a living worker has not renewed for more than half of its lease."""
    return worker.state == "alive" and left_s(worker) < worker.lease_s / 2


async def pause(act: Act) -> PressAnswer:
    """Let it claim nothing any more."""
    order = await act.client.workers.achange(act.params["id"], paused=True, reason=act.reason)
    return PressAnswer(f"{order.name} takes no new job from its next renewal on.")


async def resume(act: Act) -> PressAnswer:
    """Let it claim again."""
    order = await act.client.workers.achange(act.params["id"], paused=False, reason=act.reason)
    return PressAnswer(f"{order.name} takes jobs again from its next renewal on.")


async def drain(act: Act) -> PressAnswer:
    """Let it finish what it runs, and end."""
    order = await act.client.workers.adrain(act.params["id"], reason=act.reason)
    return PressAnswer(f"{order.name} finishes what it runs, and ends. This cannot be taken back.")


async def reclaim(act: Act) -> PressAnswer:
    """End its registration, and take its jobs back now."""
    done = await act.client.workers.areclaim(act.params["id"])
    return PressAnswer(
        f"The registration of {done.worker.name} {'is' if done.ended else 'was already'} over; "
        f"{len(done.jobs)} of its jobs were taken back.",
        changed=done.ended or bool(done.jobs),
    )


ACTIONS = (
    Action("/workers/{id}/pause", pause),
    Action("/workers/{id}/resume", resume),
    Action("/workers/{id}/drain", drain),
    # Its next attempts may run beside those that it still runs: so this is not for everybody.
    Action("/workers/{id}/reclaim", reclaim, role=Role.ADMIN),
)
SCREENS = (
    Screen("workers", "/workers", "Workers", workers, section=Section.WORK, place=40, key="w"),
    Screen("worker", "/workers/{id}", "Worker", worker, place=41, actions=ACTIONS),
)
