"""How `workers show` writes one worker: what is wanted of it beside what it does, and each job it holds."""

from __future__ import annotations

from collections.abc import Iterable

from fencerow.command import output
from fencerow.command.layout import Column
from fencerow.command.times import Times, span
from fencerow.core.model.state import WorkerState
from fencerow.core.model.wanted import Blocked, Descriptors, SlotGroup, SlotGroupNow, Stated, Wanted
from fencerow.core.model.worker import WorkerRecord
from fencerow.db.text import amount
from fencerow.operators.workers import Inspected

MIB = 1024 * 1024


def show_worker(found: Inspected, at: Times) -> None:
    """Facts, then the slot groups, then the jobs."""
    worker = found.worker
    output.facts({**_identity(worker, at), **_order(worker, at), **_now(worker)})
    if worker.stated is not None:
        output.say()
        output.table(
            (Column("queues", least=8, folds=True), "slots", "free", "running", "waiting", "jobs/s"),
            [_slot_group(each) for each in worker.stated.slot_groups],
        )
    output.say()
    output.table(
        (
            "id",
            "claimed",
            Column("job", least=8),
            Column("queue", least=8, rank=1),
            Column("attempt", rank=2),
            Column("note", rank=0),
        ),
        [
            (
                job.id,
                at.when(job.claimed_at_us),
                job.name,
                job.queue,
                job.attempt,
                "cancel asked" if job.cancel_requested else None,
            )
            for job in found.jobs
        ],
        none="it holds no job",
    )


def shown_slot_groups(groups: Iterable[SlotGroup]) -> str:
    """`mail:5 docs+other:10`, as -Q takes it."""
    return " ".join(f"{'+'.join(group.queues)}:{group.slots}" for group in groups)


def _identity(worker: WorkerRecord, at: Times) -> dict[str, object]:
    info = worker.info if isinstance(worker.info, dict) else {}
    left_s = (worker.lease_until_us - worker.now_us) / 1e6
    return {
        "id": worker.id,
        "state": worker.state,
        "name": worker.name,
        "host": worker.host,
        "pid": worker.pid,
        "version": info.get("version"),
        "labels": ", ".join(sorted(worker.labels)) or None,
        "jobs known": ", ".join(map(str, info.get("names") or [])),
        "started": at.full(worker.registered_at_us),
        "ended": at.full(worker.ended_at_us),
        "last heard": at.full(worker.renewed_at_us),
        "lease left": span(left_s) if worker.state == WorkerState.ALIVE else None,
    }


def _order(worker: WorkerRecord, at: Times) -> dict[str, object]:
    if worker.wanted is None:
        return {"wanted": "as it was started" if worker.stated else "it takes no orders: an older Fencerow"}
    by = f"by {worker.wanted_by or 'somebody'}, {at.full(worker.wanted_at_us)}"
    reason = f": {worker.wanted_reason}" if worker.wanted_reason else ""
    return {"wanted": _wanted(worker.wanted), "ordered": f"version {worker.wanted_version} {by}{reason}"}


def _now(worker: WorkerRecord) -> dict[str, object]:
    stated = worker.stated
    if stated is None:
        return {}
    memory = None if stated.memory_bytes is None else f"{stated.memory_bytes / MIB:.0f} MiB"
    failing = [f"{each.name} ({amount(each.tries, 'time')}: {each.error})" for each in stated.failing]
    return {
        "now": _stands(worker, stated),
        "holds": stated.held,
        "memory": memory,
        "descriptors": _descriptors(stated.descriptors),
        "shortage": stated.shortage,
        "too much at once": stated.too_large,
        "failing": "; ".join(failing) or None,
        "blocked": _blocked(stated.blocked),
    }


def _descriptors(descriptors: Descriptors | None) -> str | None:
    return None if descriptors is None else f"{descriptors.open} open of at most {descriptors.limit}"


def _blocked(blocked: Blocked | None) -> str | None:
    """What keeps its event loop, or kept it a few minutes ago."""
    if blocked is None:
        return None
    when = "it was" if blocked.is_over else "its event loop is"
    return f"{when}, for {blocked.seconds:g} s, by {blocked.by} at {blocked.where}"


def _stands(worker: WorkerRecord, stated: Stated) -> str:
    words = [shown_slot_groups(SlotGroup(each.queues, each.slots) for each in stated.slot_groups)]
    words += ["paused"] if stated.paused else []
    words += ["leaving"] if stated.leaving else []
    if worker.wanted is not None and stated.version != worker.wanted_version:
        words.append(f"(version {stated.version}; the order is not carried out yet)")
    return " ".join(words)


def _wanted(wanted: Wanted) -> str:
    words = [shown_slot_groups(wanted.slot_groups)]
    words += ["paused"] if wanted.paused else []
    if wanted.leave is not None:
        limit = wanted.leave.within_s
        words.append("end" if limit is None else "end now" if limit == 0 else f"end within {limit:g} s")
    return ", ".join(words)


def _slot_group(group: SlotGroupNow) -> tuple[object, ...]:
    free = max(0, group.slots - group.running)
    return ("+".join(group.queues), group.slots, free, group.running, group.waiting, group.pace)
