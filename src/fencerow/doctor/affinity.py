"""Jobs that wait for a label: what keeps one of them waiting, and labels that no living worker carries."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence, Set

import msgspec

from fencerow.command.times import span
from fencerow.core.finding import Finding, warn
from fencerow.core.model.job import JobRecord
from fencerow.core.model.lane import label_of
from fencerow.core.model.state import State
from fencerow.core.model.worker import WorkerRecord
from fencerow.db.engine import Engine
from fencerow.db.run import Steps, as_int, execute, operation
from fencerow.db.text import amount
from fencerow.doctor.conditions import Condition
from fencerow.doctor.loads import WorkerLoad

SHOWN_MAX = 5


class Labelled(msgspec.Struct, frozen=True):
    """Jobs of one queue that wait for one label: how many, and how many of them wait for nobody else, ever."""

    queue: str
    label: str
    jobs: int
    for_ever: int


@operation(alone=True, repeatable=True, writes="")
def labels_waited_for() -> Steps[list[Labelled]]:
    """For which labels jobs wait, by queue and label."""
    rows = yield from execute("labels_waited_for")
    return [Labelled(str(row[0]), str(row[1]), as_int(row[2]), as_int(row[3])) for row in rows]


def examine_labels(engine: Engine, alive: Sequence[WorkerRecord]) -> Iterator[Finding]:
    """Labels for which jobs wait for ever, and which no living worker of their queue carries."""
    waited_for = [each for each in engine.run(labels_waited_for()) if each.for_ever]
    served = _served(alive) if waited_for else {}
    alone = [
        each
        for each in waited_for
        if not any(queues is None or each.queue in queues for queues in served.get(each.label, ()))
    ]
    for each in alone[:SHOWN_MAX]:
        yield warn(
            "label that nobody carries",
            f"{amount(each.for_ever, 'job')} of queue {each.queue} may be taken by workers with the label "
            f"{each.label} only, and no living worker that serves the queue carries it",
            f"start `fencerow worker --label {shlex.quote(each.label)}` for that queue; jobs with `affinity_wait_s` "
            "do not wait for ever",
        )


def _served(alive: Sequence[WorkerRecord]) -> Mapping[str, Set[frozenset[str] | None]]:
    """Which queues are served by those who carry a label, None for all of them, by label. A worker makes its sets anew
    whenever it is asked, so each is asked once; those that are alike are one."""
    found: dict[str, set[frozenset[str] | None]] = {}
    for labels, queues in {(each.labels, each.queues) for each in alive}:
        for label in labels:
            found.setdefault(label, set()).add(queues)
    return found


def for_a_label(job: JobRecord, living: Sequence[WorkerLoad], now_us: int) -> Condition:
    """Whether a job that waits for a label is taken by somebody who carries it, or by anybody soon."""
    name, label = "a worker carries its label", job.affinity
    carriers = [each for each in living if _serves(each.worker, job.queue, str(label)) and each.knows(job)]
    until_us = None if job.affinity_wait_s is None else job.run_at_us + round(job.affinity_wait_s * 1e6)
    facts = {
        "affinity": label,
        "affinity_wait_s": job.affinity_wait_s,
        "anybody_at_us": until_us,
        "workers": [each.worker.id for each in carriers],
    }
    found = f"it waits for a worker with the label {label}; living ones that would take it: {len(carriers)}"
    if until_us is None:
        found += "; nobody else ever takes it"
    elif until_us > now_us:
        found += f"; in {span((until_us - now_us) / 1e6)} anybody may"
    else:
        found += "; its wait is over: a worker gives it to anybody within a moment"
    if not carriers and (until_us is None or until_us > now_us):
        found += f". Start `fencerow worker --label {shlex.quote(str(label))}`"
    return Condition(name, bool(carriers), found, facts)


def waits_for_a_label(job: JobRecord) -> bool:
    """Whether that is what it waits for now."""
    return job.state is State.QUEUED and label_of(job.lane) is not None


def _serves(worker: WorkerRecord, queue: str, label: str) -> bool:
    return label in worker.labels and (worker.queues is None or queue in worker.queues)
