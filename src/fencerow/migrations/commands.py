"""`fencerow shards`: the migrations of the user's own databases, planned, run, taken back and looked at."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, TypeVar

import click

from fencerow.command import output
from fencerow.command.layout import Column
from fencerow.command.options import asked, usual_options
from fencerow.command.progress import progress, shows
from fencerow.db.errors import exits
from fencerow.migrations import Migrator, Report, ShardReport
from fencerow.migrations.loading import load_migrator

F = TypeVar("F", bound=Callable[..., Any])

COLUMNS = (
    Column("shard", least=12),
    Column("outcome"),
    Column("at"),
    Column("ran", least=12, folds=True),
    Column("left", least=12, folds=True),
    Column("note", least=12, folds=True),
)


@click.group(no_args_is_help=False)
@usual_options
def shards() -> None:
    """Migrate databases of your own, one or many: -A names a Migrator (module:migrator).

    Exit code 1 means that a shard failed or was not reached; run it again to do what is left.
    """


def _shard_options(command: F) -> F:
    for option in reversed(
        (
            click.option(
                "--shard", "names", multiple=True, metavar="NAME", help="Only this one; may be repeated."
            ),
            usual_options,
        )
    ):
        command = option(command)
    return command


@shards.command()
@click.option("--baseline", type=click.IntRange(min=0), help="Show the plan of `migrate` with this baseline.")
@_shard_options
@click.pass_context
def plan(context: click.Context, names: tuple[str, ...], baseline: int | None) -> int:
    """Show what `migrate` would run on each shard. Changes nothing."""
    return _told(context, _migrator(context).plan(baseline=baseline, shards=names or None))


@shards.command()
@_shard_options
@click.pass_context
def status(context: click.Context, names: tuple[str, ...]) -> int:
    """Show the state of each shard, and which migrations are left."""
    return _told(context, _migrator(context).status(shards=names or None))


@shards.command()
@click.option(
    "--to", type=click.IntRange(min=1), metavar="N", help="Run up to this migration and no further."
)
@click.option(
    "--baseline",
    type=click.IntRange(min=0),
    metavar="N",
    help="For shards that have tables but no ledger: the last migration that they have already; 0 for none.",
)
@_shard_options
@click.pass_context
def migrate(context: click.Context, names: tuple[str, ...], to: int | None, baseline: int | None) -> int:
    """Run the missing migrations on every shard. Safe to repeat, and to run from many processes at once."""
    migrator, chosen, json = _migrator(context), names or None, asked(context).json
    left: list[str] = []  # on each of the shards; asked for only if somebody sees the bar
    if shows(json=json):
        left = [
            each for shard in migrator.plan(baseline=baseline, shards=chosen).shards for each in shard.left
        ]
        left = [each for each in left if to is None or int(each.partition("_")[0]) <= to]
    with progress("migrate", len(left), json=json) as bar:
        done: list[str] = []

        def told(shard: str, migration: str) -> None:
            done.append(migration)
            bar.to(min(len(done), len(left)), f"{shard} {migration}")

        report = migrator.migrate(to=to, baseline=baseline, shards=chosen, told=told)
    return _told(context, report)


@shards.command()
@click.option(
    "--to",
    type=click.IntRange(min=0),
    metavar="N",
    required=True,
    help="The migration to go back to; 0 for none.",
)
@click.option("--yes", is_flag=True, help="Do not ask.")
@_shard_options
@click.pass_context
def down(context: click.Context, names: tuple[str, ...], to: int, yes: bool) -> int:
    """Take back the migrations above a number, the newest first. Data that they dropped or changed is gone."""
    migrator = _migrator(context)
    chosen = names or tuple(migrator.shards)
    if not yes and sys.stdin.isatty():
        click.confirm(f"take back every migration above {to} on {', '.join(chosen)}?", abort=True, err=True)
    return _told(context, migrator.down(to, shards=names or None))


def _migrator(context: click.Context) -> Migrator:
    return load_migrator(asked(context).app)


def _told(context: click.Context, report: Report) -> int:
    if asked(context).json:
        output.say_json({"ok": report.ok, "shards": [each.as_json() for each in report.shards]})
    else:
        output.table(COLUMNS, [_line(each) for each in report.shards])
        for each in report.failed:
            if each.error is not None:
                output.report(each.error)
    return exits.OK if report.ok else exits.FAILED


def _line(found: ShardReport) -> tuple[object, ...]:
    note = f"started: {found.begun}" if found.begun else ""
    if found.ahead:
        note = f"newer code ran {', '.join(found.ahead)}"
    return found.shard, found.outcome.value, found.at, ", ".join(found.ran), ", ".join(found.left), note
