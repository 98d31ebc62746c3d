"""`fencerow schedules set` and `reconcile`: what needs the application, or says when a schedule fires."""

from __future__ import annotations

from typing import Any, Protocol, cast

import click
import msgspec

from fencerow.command import output
from fencerow.command.app_loading import load_app
from fencerow.command.completing import job_names
from fencerow.command.database import prepared
from fencerow.command.documents import instants, plain
from fencerow.command.options import CommandOptions, asked, usual_options
from fencerow.core.app.calls import Call
from fencerow.core.errors import InvalidInput
from fencerow.core.model.job import moment
from fencerow.db.errors import exits
from fencerow.schedules.appside import AppSchedules
from fencerow.schedules.commands import entity_option, verbs
from fencerow.schedules.following import Refreshed
from fencerow.schedules.shown import ScheduleRecord


class HasSchedules(Protocol):
    """An `App`, which lies above this wing."""

    @property
    def schedules(self) -> AppSchedules: ...

    def call_by_name(self, name: str, arguments: dict[str, Any] | None = None) -> Call[Any]: ...


@click.command("set")
@click.argument("name")
@click.argument("job", required=False, shell_complete=job_names)
@click.option("--args", "arguments", metavar="JSON", help="The job's arguments, as one JSON object.")
@entity_option
@click.option("--cron", metavar="EXPRESSION", help="Fire at the times of this expression: '0 3 * * *'.")
@click.option("--tz", metavar="ZONE", help="The time zone of --cron; by default UTC.")
@click.option("--rate", metavar="N", help="Fire so often: 4, 0.5 or 1/24; see --per.")
@click.option(
    "--per", type=click.Choice(("minute", "hour", "day")), help="The unit of --rate; by default hour."
)
@click.option("--interval", "interval_s", type=float, metavar="SECONDS", help="Fire every so many seconds.")
@click.option("--phase", "phase_s", type=float, metavar="SECONDS", help="Shift all fires by this.")
@click.option("--jitter", "jitter_s", type=float, metavar="SECONDS", help="Delay each fire by up to this.")
@click.option(
    "--misfire",
    type=click.Choice(("one", "skip", "all")),
    help="What becomes of fires that were missed; by default the latest one is made up.",
)
@click.option(
    "--late", "late_s", type=float, metavar="SECONDS", help="With --misfire skip: late, but not missed."
)
@click.option(
    "--catchup-max", type=int, metavar="N", help="With --misfire all: at most this many in one pass."
)
@click.option(
    "--overlap",
    type=click.Choice(("skip", "allow", "queue")),
    help="What becomes of a fire while an earlier job has not ended: no job, one beside it, or one behind it.",
)
@click.option(
    "--window", "windows", multiple=True, metavar="HOURS", help="A maintenance window; may be repeated."
)
@click.option("--in-window", type=click.Choice(("skip", "defer")), help="What becomes of a fire in a window.")
@click.option(
    "--take-over", is_flag=True, help="Change what code declares: from then on code leaves it alone."
)
@usual_options
@click.pass_context
def set_(
    context: click.Context,
    /,
    name: str,
    job: str | None,
    arguments: str | None,
    entity: str | None,
    take_over: bool,
    **options: Any,
) -> int:
    """Make a schedule, or change it. A change keeps its pause; without JOB it keeps what it submits."""
    given = {key: value for key, value in options.items() if value not in (None, ())}
    if "windows" in given:
        given["windows"] = list(given["windows"])
    wanted = asked(context)
    if job is None:
        if arguments is not None:
            raise InvalidInput(
                "--args was given without a job", "they are the job's arguments", "name the job"
            )
        with verbs(context) as (known, _):
            found = known.change(name, entity or "", take_over=take_over, **given)
        return _say_set(found, wanted)
    with prepared(load_app(wanted.app_name(), url=wanted.url), wanted) as app:
        program = cast(HasSchedules, app)
        call = program.call_by_name(job, _parsed(arguments))
        found = program.schedules.put(name, call, entity or "", take_over=take_over, **given)
    return _say_set(found, wanted)


@click.command()
@click.option(
    "--take-back", is_flag=True, help="Also where a newer version was declared: this one counts again."
)
@usual_options
@click.pass_context
def reconcile(context: click.Context, take_back: bool) -> int:
    """Make what the application declares, change what differs, and remove what it declares no longer.

    Workers do this when they start. What people made stays. Entities are looked after by workers.
    """
    wanted = asked(context)
    with prepared(load_app(wanted.app_name(), url=wanted.url), wanted) as app:
        done = cast(HasSchedules, app).schedules.reconcile(take_back=take_back)
    if wanted.json:
        output.say_json(plain(done))
        return exits.OK
    if done.newer is not None:
        output.say(f"nothing was changed: version {done.newer} was declared, which is newer (--take-back)")
        return exits.FAILED
    said = False
    for what, names in (
        ("made", done.made),
        ("changed", done.changed),
        ("removed", done.removed),
        ("left as a person made it", done.kept),
        ("left because another program's worker runs its job", done.elsewhere),
        ("no longer declared; it stays paused", done.paused),
    ):
        for each in names:
            output.say(f"{each}: {what}")
            said = True
    if not said:
        output.say("all is as it is declared")
    return exits.OK


@click.command()
@click.argument("name")
@click.option("--shrinks", is_flag=True, help="The list is right, though more than half of it is gone.")
@usual_options
@click.pass_context
def refresh(context: click.Context, name: str, shrinks: bool) -> int:
    """Ask the application for a schedule's entities, now, and keep their rows in step with its list.

    Workers do this again and again. A list that lacks more than half of the rows at once removes none: say --shrinks.
    """
    wanted = asked(context)
    with prepared(load_app(wanted.app_name(), url=wanted.url), wanted) as app:
        done = cast(HasSchedules, app).schedules.refresh(name, shrinks=shrinks)
    if wanted.json:
        output.say_json(plain(done))
    else:
        for line in _refreshed(name, done):
            output.say_text(line)
    return exits.FAILED if done.is_stale or done.trouble else exits.OK


def _refreshed(name: str, done: Refreshed) -> list[str]:
    """What came of it, for people."""
    if done.is_stale:
        return [f"{name} is declared otherwise in the database: `fencerow schedules reconcile` changes it"]
    made, changed, removed = len(done.made), len(done.changed), len(done.removed)
    lines = [f"{name}: {made} made, {changed} changed, {removed} removed"]
    lines += [f"{name}/{each} is no longer listed, and stays paused" for each in done.paused]
    return lines if done.trouble is None else [*lines, done.trouble]


def _say_set(found: ScheduleRecord, wanted: CommandOptions) -> int:
    if wanted.json:
        output.say_json(instants(found.document().items()))
    else:
        output.say_text(f"{found.full_name} fires: {found.in_words()}")
        if found.next_us is not None:
            output.say(f"next: {moment(found.next_us).isoformat(timespec='seconds')}")
    return exits.OK


def _parsed(arguments: str | None) -> dict[str, Any]:
    if arguments is None:
        return {}
    try:
        found = msgspec.json.decode(arguments)
    except (msgspec.DecodeError, UnicodeEncodeError) as error:
        raise InvalidInput("--args is no JSON", str(error)[:200], "pass one JSON object") from None
    if not isinstance(found, dict):
        raise InvalidInput("--args is no JSON object", "arguments are given by name", 'write {"name": value}')
    return found
