"""`fencerow check`: is a handler idempotent and safe side by side, and why not."""

from __future__ import annotations

from collections.abc import Callable

import click

from fencerow.command import output
from fencerow.command.app_loading import look_here
from fencerow.command.options import CommandOptions, app_option, asked, database_options, json_option
from fencerow.core.errors import InvalidInput
from fencerow.db.errors import exits
from fencerow_proof.check.check import check as check_options
from fencerow_proof.check.options import ORDERS, RUN_S, Options
from fencerow_proof.check.report import Report
from fencerow_proof.check.wire import Declared
from fencerow_proof.errors import NothingToCheck

ENGINES = ("postgres", "sqlite")


@click.command()
@click.argument("job", metavar="MODULE:JOB")
@click.option("--args", "args", default="{}", metavar="JSON", help="The job's arguments, one JSON object.")
@click.option(
    "--setup", metavar="MODULE:FUNCTION | FILE.sql", help="Makes the tables and rows that the handler needs."
)
@click.option(
    "--outside",
    multiple=True,
    metavar="MODULE:FUNCTION[,key=NAME | ,repeatable][,answer=MODULE:FUNCTION]",
    help="An outside call to be faked; `key` names its parameter with the idempotency key; to make a `repeatable` one "
    "again does no harm. May be repeated.",
)
@click.option("--ignore", multiple=True, metavar="TABLE.COLUMN", help="Not compared. May be repeated.")
@click.option(
    "--allow",
    multiple=True,
    metavar="socket:HOST[:PORT] | file:PATH | process:NAME",
    help="May leave the process undeclared, and is not judged. May be repeated.",
)
@click.option("--engine", type=click.Choice(ENGINES), help="For an application that names no database.")
@click.option(
    "--orders", type=click.IntRange(min=1), default=ORDERS, show_default=True, help="At most so many orders."
)
@click.option(
    "--run-max", "run_s", type=float, default=RUN_S, show_default=True, metavar="SECONDS", help="Of one run."
)
@click.option("--two-jobs", is_flag=True, help="Also two jobs with the same arguments side by side.")
@json_option
@database_options
@app_option
@click.pass_context
def check(
    context: click.Context,
    job: str,
    args: str,
    setup: str | None,
    outside: tuple[str, ...],
    ignore: tuple[str, ...],
    allow: tuple[str, ...],
    engine: str | None,
    orders: int,
    run_s: float,
    two_jobs: bool,
) -> int:
    """Run a handler against scratch databases, stop and fail it everywhere, and say whether that does harm.

    Ends with four answers; the exit code is 1 if one of them is no, and 7 if none is, but there were more orders of two
    runs than were played. --url names an empty PostgreSQL database beside
    which scratch databases are made; without it a private server is started, or for SQLite files in memory.
    """
    wanted = asked(context)
    if ":" not in job and wanted.app_name() is None:
        raise NothingToCheck(
            f"{ascii(job)[:80]} names no module",
            "each run imports the application",
            "write MODULE:JOB, or give -A",
        )
    options = Options(
        job=job,
        app=_application(wanted, job),
        args=args,
        engine=engine,
        url=wanted.url,
        setup=setup,
        outside=tuple(map(declared, outside)),
        ignored=ignore,
        allowed=allow,
        orders=orders,
        run_s=run_s,
        two_jobs=two_jobs,
    )
    look_here()
    report = check_options(options, _progress(wanted))
    if wanted.json:
        output.say_json(report.document())
    else:
        _show(report)
    if not report.ok:
        return exits.FAILED
    return exits.SAMPLED if report.sampled else exits.OK


def declared(text: str) -> Declared:
    """An outside call as it is written on the command line.

    Raises:
        InvalidInput: a part of it is not known.
    """
    target, *more = text.split(",")
    found: dict[str, str] = {}
    repeatable = "repeatable" in more
    for part in more:
        if part == "repeatable":
            continue
        name, equals, value = part.partition("=")
        if name not in ("key", "answer") or not equals or not value:
            raise InvalidInput(
                f"--outside has a part {ascii(part)[:80]}",
                "key=PARAMETER, repeatable and answer=MODULE:FUNCTION are known",
                "for example --outside shop.mail:send,key=message_id",
            )
        found[name] = value
    return Declared(target, key=found.get("key"), answer=found.get("answer"), repeatable=repeatable)


def _application(wanted: CommandOptions, job: str) -> str:
    name = wanted.app_name() if wanted.app is not None or ":" not in job else None
    return "" if name is None else name if ":" in name else f"{name}:app"


def _progress(wanted: CommandOptions) -> Callable[[str], None]:
    """What is under way, for a person who waits."""
    watched = output.is_terminal() and not wanted.json
    return output.warn if watched else lambda _line: None


def _show(report: Report) -> None:
    for line in report.lines():
        output.say(line)
