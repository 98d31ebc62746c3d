"""`fencerow queues`: list, pause, resume."""

from __future__ import annotations

from typing import Any

import click

from fencerow.command import output
from fencerow.command.completing import queue_names
from fencerow.command.database import actor, in_person, times, working
from fencerow.command.documents import instants
from fencerow.command.groups import group_of
from fencerow.command.layout import Column
from fencerow.command.options import asked, usual_options, utc_option
from fencerow.command.times import Times
from fencerow.core.client.base import ClientBase
from fencerow.core.model.state import State
from fencerow.db.errors import exits
from fencerow.db.text import check_text
from fencerow.operators.known_queues import nobody_knows
from fencerow.operators.queue_verbs import QueueVerbs
from fencerow.operators.summaries import summaries

NAME_MAX = 100
REASON_MAX = 500

STATES = (State.QUEUED, State.RUNNING, State.WAITING, State.FAILED, State.CANCELLED, State.SUCCEEDED)
# What is over is left out before what is still to do.
RANKS = {State.SUCCEEDED: 3, State.CANCELLED: 2, State.FAILED: 1}
COLUMNS = (
    Column("queue", least=12),
    *(Column(state.value, rank=RANKS.get(state, 0)) for state in STATES),
    Column("oldest due"),
    Column("paused", least=16, folds=True, lines=4),
)


@click.command("list")
@utc_option
@usual_options
@click.pass_context
def list_(context: click.Context) -> None:
    """List queues: jobs by state, how long the first due job has waited, and whether the queue is paused."""
    with working(asked(context)) as engine:
        found = list(ClientBase(engine).run(summaries()).values())
        at = times(engine, asked(context))
    if asked(context).json:
        output.say_json([_document(each) for each in found])
        return
    output.table(
        COLUMNS,
        [
            (
                each["queue"],
                *(each["jobs"][state.value] or None for state in STATES),
                _first_due(each, at),
                _paused(each["paused"], at),
            )
            for each in found
        ],
        none="no queue holds a job or is paused",
    )


queues = group_of(list_, "queues", "List, pause and resume queues. Without a verb: list.")


@queues.command()
@click.argument("queue", shell_complete=queue_names)
@click.option("--reason", metavar="TEXT", help="Why; shown by `queues list` and `why`.")
@usual_options
@click.pass_context
def pause(context: click.Context, queue: str, reason: str | None) -> int:
    """Stop claims from a queue. Running jobs go on. The queue stays paused across restarts.

    A queue that no live job and no living worker knows is paused too; the command says so, with the closest name.
    Its jobs that have a turn of an exclusive key, and do not run, give it to those of other queues that wait."""
    check_text(queue, "the queue's name", NAME_MAX)
    if reason is not None:
        check_text(reason, "--reason", REASON_MAX)
    with working(asked(context)) as engine:
        verbs = QueueVerbs(in_person(engine, asked(context)), actor=actor(asked(context).config()))
        changed = verbs.pause_queue(queue, reason=reason)
        unknown = verbs.run(nobody_knows(queue))
    if asked(context).json:
        output.say_json({"queue": queue, "paused": True, "changed": changed})
    else:
        output.say(
            f"{queue} is paused" if changed else f"{queue} was paused already; the first reason is kept"
        )
    if unknown:
        output.warn(unknown)
    return exits.OK


@queues.command()
@click.argument("queue", shell_complete=queue_names)
@usual_options
@click.pass_context
def resume(context: click.Context, queue: str) -> int:
    """Allow claims from a queue again."""
    check_text(queue, "the queue's name", NAME_MAX)
    with working(asked(context)) as engine:
        verbs = QueueVerbs(in_person(engine, asked(context)))
        changed = verbs.resume_queue(queue)
        unknown = None if changed else verbs.run(nobody_knows(queue))
    if asked(context).json:
        output.say_json({"queue": queue, "paused": False, "changed": changed})
    else:
        output.say(f"{queue} is resumed" if changed else f"{queue} was not paused")
    if unknown:
        output.warn(unknown)
    return exits.OK


def _first_due(found: dict[str, Any], at: Times) -> str | None:
    waited_s = found["oldest_due_s"]
    return None if waited_s is None else at.when(at.now_us - round(waited_s * 1e6))


def _document(found: dict[str, Any]) -> dict[str, Any]:
    pause = found["paused"]
    return {**found, "paused": None if pause is None else instants(pause.items())}


def _paused(pause: dict[str, Any] | None, at: Times) -> str | None:
    if pause is None:
        return None
    by = f" by {pause['by']}" if pause["by"] else ""
    return f"{at.when(pause['at_us'])}{by}" + (f": {pause['reason']}" if pause["reason"] else "")
