"""`fencerow steps`: what jobs wait for and remember, and how they go on from a step; `fencerow signal`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import msgspec

from fencerow.command import output
from fencerow.command.app_loading import load_app
from fencerow.command.database import acting, working
from fencerow.command.documents import instants, plain
from fencerow.command.groups import group_of
from fencerow.command.layout import Column
from fencerow.command.options import asked, full_option, limit_option, usual_options, utc_option
from fencerow.command.times import Times
from fencerow.core.client.base import ClientBase
from fencerow.core.client.refs import reading
from fencerow.core.errors import InvalidInput
from fencerow.core.model.job import JobRecord
from fencerow.core.store.read import clock
from fencerow.db.errors import exits
from fencerow.db.run import Procedure, ask
from fencerow.operators.prefixes import job_meant, parse_prefix
from fencerow.steps.memory import steps_of, waiting_for
from fencerow.steps.model import JobWait, SentSignal, Step
from fencerow.steps.reviving import reviving_from
from fencerow.steps.signals import signalling, signals_of

LIMIT = 50
LIMIT_MAX = 10_000
WAITS = (
    Column("job", short=True),
    Column("name", least=8, rank=2),
    Column("queue", least=8, rank=3),
    Column("waits for", least=12),
    Column("until"),
    Column("since", rank=1),
)
STEPS = (
    Column("step", least=12, folds=True),
    Column("kind", rank=1),
    Column("attempt", rank=2),
    Column("when"),
    Column("took", rank=1),
    Column("result", least=12, folds=True),
)
SIGNALS = (
    Column("signal", least=8),
    Column("sent"),
    Column("by", least=8, rank=1),
    Column("taken by", least=10),
    Column("data", least=12, folds=True),
)


@click.command("list")
@click.option("--signal", metavar="NAME", help="Only jobs that wait for this signal.")
@limit_option(LIMIT, most=LIMIT_MAX)
@full_option
@utc_option
@usual_options
@click.pass_context
def list_(context: click.Context, signal: str | None = None, limit: int = LIMIT) -> None:
    """List what suspended jobs wait for, those first whose time comes first."""
    with working(asked(context)) as engine:
        found = engine.run(waiting_for(signal=signal, limit=limit))
    if asked(context).json:
        output.say_json(found)
        return
    at = [Times(each.now_us, asked(context).utc) for each in found]
    rows = [_wait_row(*each) for each in zip(found, at, strict=True)]
    output.table(WAITS, rows, none="no job sleeps or waits for a signal", full=asked(context).full)


steps = group_of(
    list_,
    "steps",
    "Show what jobs remember of their steps and what they wait for. Without a verb: list.",
)


@steps.command()
@click.argument("job")
@utc_option
@usual_options
@click.pass_context
def show(context: click.Context, job: str) -> None:
    """Show what a job remembers of its run, what it waits for, and the signals that were sent to it."""
    with working(asked(context)) as engine:
        record, remembered, waits, sent, now_us = ClientBase(engine).run(_looked(job))
    if asked(context).json:
        output.say_json(_document(record, remembered, waits, sent))
        return
    at = Times(now_us, asked(context).utc)
    output.facts(
        {"job": record.id, "name": record.name, "state": record.state.value, "attempt": record.attempt}
    )
    output.say()
    output.table(STEPS, [_step_row(each, at) for each in remembered], none="it remembers nothing")
    if waits:
        output.say()
        output.table(WAITS, [_wait_row(each, at) for each in waits])
    if sent:
        output.say()
        output.table(SIGNALS, [_signal_row(each, at) for each in sent])


@steps.command()
@click.argument("job")
@click.option("--from", "step", required=True, metavar="STEP", help="The first step that is done again.")
@click.option("--reason", metavar="TEXT", help="Why, for the job's timeline.")
@usual_options
@click.pass_context
def revive(context: click.Context, job: str, step: str, reason: str | None) -> None:
    """Queue a finished job again: it repeats this step and all behind it, and remembers those before."""
    with working(asked(context)) as engine:
        job_id = ClientBase(engine).run(job_meant(parse_prefix(job)))
        client = acting(engine, asked(context))
        forgotten = client.run(reviving_from(job_id, step, client.actor, reason))
    if asked(context).json:
        output.say_json({"job_id": job_id, "forgotten": forgotten})
    else:
        output.say(f"job {job_id} is queued; it does again: {', '.join(forgotten)}")


@steps.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False))
@usual_options
@click.pass_context
def verify(context: click.Context, file: str) -> None:
    """Run a job's handler against the history in FILE, and say where the code departs from it.

    FILE is what `steps show JOB --json` printed. The application is named by -A. Steps are not done and nothing is
    stored, but what stands between steps runs.
    """
    from fencerow.steps.verifying import recorded, verified

    record = recorded(Path(file).read_bytes(), file)
    app = load_app(asked(context).app_name())
    told = verified(app, record)
    if asked(context).json:
        output.say_json(told)
    else:
        output.say(told.line)
    context.exit(exits.OK if told.agrees else exits.FAILED)


@click.command()
@click.argument("job")
@click.argument("name")
@click.argument("data", required=False)
@usual_options
@click.pass_context
def signal(context: click.Context, job: str, name: str, data: str | None) -> None:
    """Send a signal to a job: `job.wait_for(NAME)` gets DATA, which is JSON."""
    given = None if data is None else _read(data)
    with working(asked(context)) as engine:
        job_id = ClientBase(engine).run(job_meant(parse_prefix(job)))
        client = acting(engine, asked(context))
        answer = client.run(signalling(job_id, name, given, None, client.actor, None))
    if asked(context).json:
        output.say_json(plain(answer))
    elif answer.woken:
        output.say(f"job {answer.job_id} waited for it, and is queued")
    else:
        output.say(f"the signal is kept until job {answer.job_id} waits for it")


def _read(data: str) -> Any:
    try:
        return msgspec.json.decode(data)
    except msgspec.DecodeError as error:
        raise InvalidInput(
            f"the data of the signal are no JSON: {error}",
            "text stands in quotes: '\"yes\"'",
            "correct the data",
        ) from None


Looked = tuple[JobRecord, list[Step], list[JobWait], list[SentSignal], int]


def _looked(job: str) -> Procedure[Looked]:
    job_id = yield from job_meant(parse_prefix(job))
    record = yield from reading(job_id)
    remembered = yield from ask(steps_of(job_id))
    waits = yield from ask(waiting_for(job_id, limit=LIMIT_MAX))
    sent = yield from ask(signals_of(job_id))
    return record, remembered, waits, sent, (yield from ask(clock()))


def _document(
    record: JobRecord, remembered: list[Step], waits: list[JobWait], sent: list[SentSignal]
) -> dict[str, Any]:
    job = {"id": record.id, "name": record.name, "state": record.state.value, "attempt": record.attempt}
    steps = [
        instants([*msgspec.structs.asdict(each).items(), ("result", _json(each.result))])
        for each in remembered
    ]
    return {"job": {**job, "args": record.args}, "steps": steps, "waits": waits, "signals": sent}


def _json(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        return text


def _wait_row(each: JobWait, at: Times) -> tuple[object, ...]:
    what = "a time" if each.signal is None else f"signal {each.signal}"
    return each.job_id, each.name, each.queue, what, at.when(each.until_us), at.when(each.since_us)


def _step_row(each: Step, at: Times) -> tuple[object, ...]:
    took = None if each.took_s is None else f"{each.took_s:.3f} s"
    return each.name, each.kind.value, each.attempt, at.fine(each.at_us), took, each.result


def _signal_row(each: SentSignal, at: Times) -> tuple[object, ...]:
    data = msgspec.json.encode(each.data).decode()
    return each.name, at.when(each.sent_at_us), each.sent_by, each.taken_as or "nobody yet", data
