"""`fencerow move`: all jobs of a SQLite file to PostgreSQL, with all that belongs to them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from urllib.parse import unquote

import click

from fencerow.command import output
from fencerow.command.database import actor, in_person, opened, reach
from fencerow.command.layout import Column
from fencerow.command.options import CommandOptions, asked, usual_options
from fencerow.command.progress import progress
from fencerow.core.errors import InvalidInput
from fencerow.core.schema.migrate import refuse_foreign
from fencerow.db.sqlite import SqliteEngine
from fencerow.db.text import amount
from fencerow.db.url import PostgresUrl, SqliteUrl, masked, parse_url
from fencerow.moving.model import MoveReport
from fencerow.moving.moving import Mover

COLUMNS = (Column("table"), Column("rows"), Column("checksum", rank=1))


def _url(_context: click.Context, _parameter: click.Parameter, value: str) -> str:
    if any(masked(form) != form for form in (value, unquote(value))):
        # The value is not repeated: it would reach the terminal's log as well.
        raise InvalidInput(
            "a database URL on the command line holds a password",
            "every user of the machine can read the arguments of a process",
            "leave the password to PGPASSFILE (~/.pgpass)",
        )
    return value


@click.command()
@click.argument("source", metavar="FROM", callback=_url)
@click.argument("target", metavar="TO", callback=_url)
@click.option("--dry-run", is_flag=True, help="Only say what would be moved, in numbers.")
@click.option(
    "--wait", "wait_s", metavar="SECONDS", type=click.FloatRange(min=0), default=600.0, show_default=True,
    help="How long to wait for the jobs that run.",
)  # fmt: skip
@click.option("--reopen", is_flag=True, help="Take a move back that has not come to its end.")
@usual_options
@click.pass_context
def move(
    context: click.Context, source: str, target: str, dry_run: bool, wait_s: float, reopen: bool
) -> None:
    """Move all jobs from a SQLite file to a PostgreSQL database, with all that belongs to them.

    FROM is sqlite:///FILE, TO is postgresql://..., without a password (PGPASSFILE has it). Workers may stand on both
    sides: those of the file end their jobs and take no others, those of the new database begin when all has come.
    Broken off at any point, run it again: it goes on.
    """
    with _mover(asked(context), source, target) as mover:
        if reopen:
            _say_reopened(context, mover, mover.reopen())
        elif dry_run:
            _say(context, mover.planned())
        else:
            with _shown(mover, json=asked(context).json) as shown:
                report = shown.move(wait_s=wait_s)
            _say(context, report)


@contextmanager
def _mover(options: CommandOptions, source: str, target: str) -> Iterator[Mover]:
    here, there = parse_url(source), parse_url(target)
    if not isinstance(here, SqliteUrl) or not isinstance(there, PostgresUrl):
        raise InvalidInput(
            "jobs are not moved between these two",
            "they move from a SQLite file to a PostgreSQL database",
            "write `fencerow move sqlite:///jobs.db postgresql://host/database`",
        )
    from fencerow.db.postgres import PostgresEngine  # with its driver: only where it is used

    config, other = (replace(options.config(), url=url) for url in (source, target))
    for each in (config, other):
        reach(each)
    with opened(config) as engine, opened(other) as filled:
        assert isinstance(engine, SqliteEngine)
        assert isinstance(filled, PostgresEngine)
        refuse_foreign(engine)
        yield Mover(engine, in_person(engine, options), filled, config, masked(target), actor(config))


@contextmanager
def _shown(mover: Mover, *, json: bool) -> Iterator[Mover]:
    """With a bar for people; the whole is counted before."""
    whole = mover.planned().rows
    with progress("move", whole, json=json) as bar:
        done: dict[str, int] = {}

        def tell(step: str, count: int, _of: int) -> None:
            done[step] = count
            bar.to(min(sum(done.values()), whole), step)

        yield replace(mover, tell=tell)


def _say(context: click.Context, report: MoveReport) -> None:
    if asked(context).json:
        output.say_json(_document(report))
        return
    rows = [(name, each.rows, f"{each.checksum:032x}") for name, each in report.tables.items() if each.rows]
    output.table(COLUMNS, rows, none="nothing to move")
    output.say(_sentence(report))
    for name, why in report.staying.items():
        output.say(f"{name} stays: {why}")
    if report.outside:
        has = "has" if report.outside == 1 else "have"
        output.say_text(
            f"{amount(report.outside, 'job')} {has} payloads outside of the database: they stay where they are, so the "
            "new database must be given the same outside_store"
        )


def _sentence(report: MoveReport) -> str:
    if report.state == "moved":
        return (
            f"moved to {report.target}"
            if not report.tables
            else (
                f"{amount(report.rows, 'row')} moved to {report.target}, counted and compared there; it is open"
            )
        )
    waits = f", once {amount(report.running, 'job')} that a worker has ended" if report.running else ""
    return f"{amount(report.rows, 'row')} would be moved to {report.target}{waits} ({report.state})"


def _document(report: MoveReport) -> dict[str, object]:
    """For programs."""
    return {
        "source": report.source,
        "target": report.target,
        "state": report.state,
        "rows": report.rows,
        "running": report.running,
        "outside": report.outside,
        "tables": {
            name: {"rows": each.rows, "checksum": f"{each.checksum:032x}"}
            for name, each in report.tables.items()
        },
        "staying": report.staying,
    }


def _say_reopened(context: click.Context, mover: Mover, taken_back: bool) -> None:
    if asked(context).json:
        output.say_json({"reopened": taken_back})
    else:
        said = "takes jobs again; nothing was moved" if taken_back else "was not being moved"
        output.say(f"{mover.engine.path} {said}")
