"""`fencerow history`: check the recorded history of a run, with the database at its end."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import click

from fencerow.command import output
from fencerow.command.database import resolved, working
from fencerow.command.options import CommandOptions, app_option, asked, database_options, json_option
from fencerow.db.engine import Engine
from fencerow.db.errors import exits
from fencerow_proof.history.check import Options, check
from fencerow_proof.history.report import Report


@click.group(no_args_is_help=False)
def history() -> None:
    """Recorded histories of runs, see docs/testing.md."""


@history.command("check")
@click.argument("paths", metavar="FILES…", nargs=-1, required=True)
@click.option("--history-only", is_flag=True, help="Do not look into the database.")
@click.option(
    "--effects",
    metavar="JOB",
    multiple=True,
    help="A job whose handler writes a row of `effect`; may be repeated.",
)
@click.option("--undrained", is_flag=True, help="Jobs were left to do when the run ended.")
@click.option("--foreign", is_flag=True, help="The database holds jobs that were not recorded.")
@click.option("--clock-moved", is_flag=True, help="The database's clock jumped during the run.")
@click.option("--sweep-s", type=float, help="How often the workers looked for the dead, if not as recorded.")
@click.option(
    "--slack-s", type=float, default=5.0, show_default=True, help="What recovery may take beyond its bound."
)
@json_option
@database_options
@app_option
@click.pass_context
def check_command(context: click.Context, /, paths: Sequence[str], **told: Any) -> int:
    """Decide from histories (files, or folders of them) whether what Fencerow promises held in a run.

    The database must be at rest. Exit code 0: nothing is broken; 1: the report says what, and which lines prove it.
    """
    options = Options(
        effects=frozenset(told["effects"]),
        drained=not told["undrained"],
        foreign=told["foreign"],
        clock_moved=told["clock_moved"],
        sweep_s=told["sweep_s"],
        slack_s=told["slack_s"],
    )
    with _database(asked(context), history_only=told["history_only"]) as engine:
        report = check(paths, engine, options)
    if asked(context).json:
        output.say_json(_as_json(report))
    else:
        output.say_block(report.text())
    return exits.OK if report.is_clean else exits.FAILED


@contextmanager
def _database(asked: CommandOptions, *, history_only: bool) -> Iterator[Engine | None]:
    if history_only or resolved(asked).url is None:
        yield None
        return
    with working(asked) as engine:
        yield engine


def _as_json(report: Report) -> dict[str, Any]:
    return {
        "ok": report.is_clean,
        "looked": dict(sorted(report.looked.items())),
        "undecided": report.undecided,
        "violations": [
            {
                "invariant": each.invariant,
                "job": each.job,
                "what": each.what,
                "lines": [f"{proof.path}:{proof.number}" for proof in report.proofs(each)],
            }
            for each in report.violations
        ],
    }
