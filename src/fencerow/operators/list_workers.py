"""How `workers list` writes the registered workers: who is alive, what each runs, holds and serves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from fencerow.command import output
from fencerow.command.database import working
from fencerow.command.documents import plain
from fencerow.command.layout import Column
from fencerow.command.options import CommandOptions, limit_option, usual_options, utc_option
from fencerow.command.times import Times, span
from fencerow.core.errors import InvalidInput
from fencerow.core.model.state import WorkerState
from fencerow.core.model.worker import WorkerRecord
from fencerow.core.store import store
from fencerow.operators.held import NONE_HELD, held_counts

F = TypeVar("F", bound=Callable[..., Any])

COLUMNS = (
    Column("id"),
    Column("name", least=8),
    Column("busy"),
    Column("held"),
    Column("note", least=12, rank=1),
    Column("queues", least=8, rank=2),
    Column("labels", least=8, rank=3),
    Column("heard", rank=3),
    Column("host", least=8, rank=4),
    Column("pid", rank=5),
    Column("started", rank=6),
)
STATE = Column("state")


def list_options(command: F) -> F:
    """Which workers a list shows, and how."""
    for option in reversed(
        (
            click.option(
                "--state",
                type=click.Choice([state.value for state in WorkerState]),
                help="Only those in this state; by default those that are alive.",
            ),
            click.option("--all", "everybody", is_flag=True, help="Also those that have retired or died."),
            limit_option(100, most=1_000),
            utc_option,
            usual_options,
        )
    ):
        command = option(command)
    return command


def list_workers(asked: CommandOptions, *, state: str | None, everybody: bool, limit: int) -> None:
    """Look, and print what was found.

    Raises:
        InvalidInput: both one state and all were asked for.
    """
    if state is not None and everybody:
        raise InvalidInput("both --state and --all were given", "one of them is meant", "leave one out")
    wanted = None if everybody else state or WorkerState.ALIVE.value
    with working(asked) as engine:
        found = engine.run(store.list_workers(state=wanted, limit=limit))
        held = engine.run(held_counts([worker.id for worker in found]))
    if asked.json:
        output.say_json([_document(each, held.get(each.id, NONE_HELD).jobs) for each in found])
        return
    rows = [_row(each, held.get(each.id, NONE_HELD).jobs, asked.utc) for each in found]
    if wanted is not None:
        output.table(COLUMNS, rows, none=f"no worker is {wanted}; --all shows those that have ended")
        return
    states = [each.state for each in found]
    output.table(
        (COLUMNS[0], STATE, *COLUMNS[1:]),
        [(row[0], state, *row[1:]) for row, state in zip(rows, states, strict=True)],
        none="no worker is registered",
    )


def _document(worker: WorkerRecord, held: int) -> dict[str, Any]:
    """The record, what it holds, and what it said that it does; one that said nothing has no such fields."""
    fields: dict[str, Any] = {**plain(worker), "held": held, "labels": sorted(worker.labels)}
    if worker.slots is not None:
        fields["slots"] = worker.slots
    if worker.queues is not None:
        fields["queues"] = sorted(worker.queues)
    if worker.stated is not None and worker.state == WorkerState.ALIVE:
        fields["running"] = running(worker)
        fields["waiting"] = sum(group.waiting for group in worker.stated.slot_groups)
    return fields


def running(worker: WorkerRecord) -> int | None:
    """How many of its slots run a job, as it said at its last renewal; None if it does not say, or has ended.

    The database cannot know: a worker claims ahead what its slots will need, and a claimed job is `running` there.
    """
    if worker.stated is None or worker.state != WorkerState.ALIVE:
        return None
    return sum(group.running for group in worker.stated.slot_groups)


def _row(worker: WorkerRecord, held: int, utc: bool) -> tuple[object, ...]:
    at = Times(worker.now_us, utc)
    return (
        worker.id,
        worker.name,
        _busy(worker),
        held,
        _note(worker),
        ",".join(sorted(worker.queues or [])),
        ",".join(sorted(worker.labels)) or None,
        at.when(worker.renewed_at_us if worker.ended_at_us is None else worker.ended_at_us),
        worker.host,
        str(worker.pid),
        at.when(worker.registered_at_us),
    )


def _busy(worker: WorkerRecord) -> str | None:
    if worker.slots is None or worker.state != WorkerState.ALIVE:
        return None
    busy = running(worker)
    return f"{'?' if busy is None else busy} of {worker.slots}"


def _note(worker: WorkerRecord) -> str | None:
    if worker.state != WorkerState.ALIVE:
        return None
    silent_s = (worker.now_us - worker.lease_until_us) / 1e6
    if silent_s > 0:
        return f"silent: its lease ran out {span(silent_s)} ago"
    if worker.stated is None:
        return None
    if worker.stated.version != worker.wanted_version and worker.wanted is not None:
        return "an order waits"
    if worker.stated.leaving:
        return "leaving"
    if worker.stated.blocked is not None and not worker.stated.blocked.is_over:
        return f"blocked by {worker.stated.blocked.job or 'code that is no job'}"
    if worker.stated.failing:
        return f"{worker.stated.failing[0].name} fails"
    return "paused" if worker.stated.paused else None
