"""One frame of `fencerow top`, as lines of plain text. Pure: it draws nothing and asks nothing."""

from __future__ import annotations

from collections.abc import Sequence

from fencerow.command.ids import short_id
from fencerow.command.layout import Column, cut, fitted
from fencerow.command.times import Times, exact, span
from fencerow.core.model.worker import WorkerRecord
from fencerow.db.text import clean
from fencerow.operators.top.look import FailedJob, Glance, QueueNow

GAP = "  "
FIXED = (
    9  # lines beside the rows: the title, three headings, blank lines between them, the line at the bottom
)
FAILURES_LEAST = 3
TIME_OF_DAY = len("2026-11-22T")  # where it begins: the title keeps to 80 columns

QUEUES = (
    Column("queue", least=12),
    Column("due"),
    Column("later"),
    Column("running"),
    Column("first due"),
    Column("ended/min"),
    Column("failed/min"),
    Column("waiting", rank=2),
    Column("note", rank=1),
)
WORKERS = (
    Column("worker", least=8),
    Column("busy"),
    Column("lease"),
    Column("jobs/s"),
    Column("note", least=8, rank=1),
    Column("queues", least=8, rank=2),
    Column("host", least=8, rank=3),
    Column("pid", rank=4),
)
FAILURES = (
    Column("failed"),
    Column("id"),
    Column("job", least=8),
    Column("error", least=12),
    Column("queue", least=8, rank=1),
    Column("attempt", rank=2),
)


def frame(look: Glance, width: int, height: int | None = None, *, note: str = "") -> list[str]:
    """The lines of a frame. With a height there are never more, and what does not fit is counted.

    `note`: what is said at the bottom, such as that the database is away.
    """
    at = Times(look.now_us)
    queues, workers, failures = _rooms(look, height)
    shown = [_failure(each, at, short=height is not None) for each in look.failures[:failures]]
    lines = [
        cut(_title(look), width),
        "",
        *_table(QUEUES, [_queue(each, at) for each in _chosen(look, queues)], width, "no live jobs"),
        *_more(len(look.queues) - queues, "queues"),
        "",
        *_table(WORKERS, [_worker(each, at) for each in look.workers[:workers]], width, "no worker is alive"),
        *_more(len(look.workers) - workers, "workers"),
        "",
        *_table(
            FAILURES,
            shown,
            width,
            "no job failed",
        ),
    ]
    if note:
        lines += ["", cut(clean(note), width)]
    if height is None or len(lines) <= height:
        return lines
    return [*lines[: height - 1], lines[-1]] if note else lines[:height]


def _rooms(look: Glance, height: int | None) -> tuple[int, int, int]:
    """How many rows each part has. Without a height all have all."""
    wanted = (len(look.queues), len(look.workers), len(look.failures))
    if height is None:
        return wanted
    free = max(height - FIXED, 3)
    failures = min(wanted[2], max(FAILURES_LEAST, free - wanted[0] - wanted[1]))
    free -= max(failures, 1)
    queues = min(wanted[0], max(free // 2, free - wanted[1]))
    # A line that counts the rest takes the place of a row.
    queues -= queues < wanted[0]
    workers = min(wanted[1], free - max(queues, 1) - (queues < wanted[0]))
    workers -= workers < wanted[1]
    return max(queues, 1), max(workers, 1), max(failures, 1)


def _chosen(look: Glance, room: int) -> list[QueueNow]:
    """All by name, or those with the longest wait first where there is no room for all."""
    if len(look.queues) <= room:
        return look.queues
    return sorted(look.queues, key=lambda each: (each.first_due_us is None, each.first_due_us, each.queue))[
        :room
    ]


def _title(look: Glance) -> str:
    due, later, running, ended, failed = (
        sum(getattr(each, name) for each in look.queues)
        for name in ("due", "later", "running", "ended", "failed")
    )
    return (
        f"fencerow top  {exact(look.now_us)[TIME_OF_DAY:]}  due {due}  later {later}  running {running}  "
        f"ended {ended}/min  failed {failed}/min"
    )


def _more(left: int, what: str) -> list[str]:
    return [f"and {left} more {what}"] if left > 0 else []


def _queue(each: QueueNow, at: Times) -> tuple[object, ...]:
    return (
        each.queue,
        each.due,
        each.later,
        each.running,
        at.when(each.first_due_us),
        each.ended,
        each.failed,
        each.waiting,
        "paused" if each.paused else None,
    )


def _worker(worker: WorkerRecord, at: Times) -> tuple[object, ...]:
    groups = () if worker.stated is None else worker.stated.slot_groups
    running = sum(group.running for group in groups) if groups else "?"
    return (
        worker.name,
        None if worker.slots is None else f"{running} of {worker.slots}",
        at.when(worker.renewed_at_us),
        f"{sum(group.pace for group in groups):.1f}" if groups else None,
        _state(worker),
        ",".join(sorted(worker.queues or ())),
        worker.host,
        str(worker.pid),
    )


def _state(worker: WorkerRecord) -> str | None:
    late_s = (worker.now_us - worker.lease_until_us) / 1e6
    if late_s > 0:
        return f"silent: its lease ran out {span(late_s)} ago"
    if worker.stated is None:
        return None
    if worker.stated.leaving:
        return "leaving"
    return "paused" if worker.stated.paused else None


def _failure(each: FailedJob, at: Times, *, short: bool) -> tuple[object, ...]:
    return (
        at.when(each.ended_at_us),
        short_id(each.id) if short else each.id,
        each.name,
        each.message,
        each.queue,
        each.attempt,
    )


def _table(columns: Sequence[Column], rows: Sequence[Sequence[object]], width: int, none: str) -> list[str]:
    if not rows:
        return [f"({none})"]
    cells = [["-" if value in (None, "") else clean(str(value)) for value in row] for row in rows]
    layout = fitted(columns, cells, width)
    heads = [column.name for column in columns]
    return [
        GAP.join(
            cut(row[number], room).ljust(room)
            for number, room in zip(layout.shown, layout.widths, strict=True)
        ).rstrip()[:width]
        for row in (heads, *cells)
    ]
