"""`fencerow bench`: how fast it is on this machine, each figure beside the raw limit of the same database."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import click

from fencerow.bench.earlier import AgainstEarlier, EarlierRun, earlier_run
from fencerow.bench.evidence import circumstances, document
from fencerow.bench.figure import Figure
from fencerow.bench.place import BenchDatabase, private_postgres, private_sqlite, scratch
from fencerow.bench.run import QUESTIONS, run
from fencerow.bench.sizes import FULL, QUICK
from fencerow.command import output
from fencerow.command.layout import Column
from fencerow.command.options import CommandOptions, asked, database_options, json_option
from fencerow.core.errors import InvalidInput
from fencerow.testing.postgres import BinariesMissing, find_binaries

ENGINES = ("postgres", "sqlite")
COLUMNS = (
    Column("question"),
    Column("what", least=20, folds=True),
    Column("ours"),
    Column("unit"),
    Column("ratio"),
    Column("beside", least=16, folds=True),
    Column("more", least=16, folds=True),
)
EARLIER = Column("earlier", least=16, folds=True)


@click.command()
@click.argument("questions", nargs=-1, type=click.Choice(sorted(QUESTIONS)), metavar="[QUESTION]...")
@click.option(
    "--quick", is_flag=True, help="Take seconds instead of minutes: shows that it runs, not how fast."
)
@click.option("--engine", type=click.Choice(ENGINES), help="Measure on this engine; by default on both.")
@click.option(
    "--save", type=click.Path(dir_okay=False, path_type=Path), help="Write the evidence to this file."
)
@click.option(
    "--beside",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Compare each figure with this file of an earlier run.",
)
@click.option("--force", is_flag=True, help="Measure even if workers use the database.")
@json_option
@database_options
@click.pass_context
def bench(
    context: click.Context,
    questions: Sequence[str],
    quick: bool,
    engine: str | None,
    save: Path | None,
    beside: Path | None,
    force: bool,
) -> int:
    """Measure drain, submit, latency, growth and idle here, each beside bare statements on the same database.

    Without --url it uses a private PostgreSQL server, if its programs are installed, and a SQLite file in the
    working directory. With --url it uses scratch tables of that database and drops them at the end; it loads
    the server for minutes. With --beside each row says what an earlier run found, and how many times that this is.
    """
    wanted = asked(context)
    _refuse_place(save)
    earlier = None if beside is None else earlier_run(beside)
    facts = circumstances()
    found: list[tuple[BenchDatabase, Figure]] = []
    for place, figure in run(
        _places(wanted, engine, force), QUICK if quick else FULL, questions or tuple(QUESTIONS)
    ):
        found.append((place, figure))
        if output.is_terminal() and not wanted.json:
            output.warn(
                f"{place.kind} {figure.question}: {figure.what}: {_number(figure.ours)} {figure.unit}"
            )
    evidence = document(facts, _command(wanted, questions, quick=quick, engine=engine), found)
    changes = [None if earlier is None else earlier.change(each) for each in evidence["figures"]]
    if save is not None:
        save.write_text(json.dumps(evidence, indent=2) + "\n", encoding="utf-8")
    if wanted.json:
        output.say_json(evidence if earlier is None else _compared(evidence, earlier, changes))
    else:
        _show(facts, found, earlier, changes)
    return 0


def _compared(
    evidence: dict[str, Any], earlier: EarlierRun, changes: Sequence[AgainstEarlier | None]
) -> dict[str, Any]:
    figures = [
        {
            **each,
            "then": None if change is None else change.then,
            "times": None if change is None else change.times,
        }
        for each, change in zip(evidence["figures"], changes, strict=True)
    ]
    return {**evidence, "earlier": earlier.told, "figures": figures}


def _refuse_place(save: Path | None) -> None:
    """Before minutes of measuring, not after them."""
    if save is not None and not (
        save.absolute().parent.is_dir() and os.access(save.absolute().parent, os.W_OK)
    ):
        raise InvalidInput(
            f"--save: nothing can be written to {save.absolute().parent}",
            "an existing folder that this user may write to is expected",
            "make the folder, or name another file",
        )


def _command(
    wanted: CommandOptions, questions: Sequence[str], *, quick: bool, engine: str | None
) -> list[str]:
    """The command as it matters to the figures; where the database is concerns nobody else."""
    given = [*questions, *(["--quick"] if quick else []), *(["--engine", engine] if engine else [])]
    return [*given, "--url", "..."] if wanted.url is not None else given


def _places(
    wanted: CommandOptions, engine: str | None, force: bool
) -> list[AbstractContextManager[BenchDatabase]]:
    if wanted.url is not None:
        if engine is not None:
            raise InvalidInput(
                "--url and --engine were both given", "the URL names the engine", "leave out --engine"
            )
        return [scratch(wanted.config(), force=force)]
    places: list[AbstractContextManager[BenchDatabase]] = []
    if engine != "sqlite":
        try:
            find_binaries()
            places.append(private_postgres())
        except BinariesMissing:
            if engine == "postgres":
                raise InvalidInput(
                    "PostgreSQL's programs were not found on this machine",
                    "the bench starts a private server with them",
                    "install them, set FENCEROW_PG_BIN, or name a database with --url",
                ) from None
            output.warn("PostgreSQL's programs were not found here; only SQLite is measured")
    if engine != "postgres":
        places.append(private_sqlite(Path.cwd()))
    return places


def _show(
    facts: dict[str, object],
    found: Sequence[tuple[BenchDatabase, Figure]],
    earlier: EarlierRun | None,
    changes: Sequence[AgainstEarlier | None],
) -> None:
    output.say(
        f"{facts['machine']}; Python {facts['python']}; Fencerow {facts['fencerow']} ({facts['commit']})"
    )
    if earlier is not None:
        output.say(f"earlier: {earlier.told}")
    more = () if earlier is None else (EARLIER,)
    for about in dict.fromkeys(place.about for place, _ in found):
        output.say()
        output.say(about)
        rows = [
            (*_row(figure), *((_change(change),) if more else ()))
            for (place, figure), change in zip(found, changes, strict=True)
            if place.about == about
        ]
        output.table((*COLUMNS, *more), rows)


def _row(figure: Figure) -> tuple[str, ...]:
    beside = "" if figure.raw is None else f"{figure.beside}: {_number(figure.raw)}"
    ratio = "" if figure.ratio is None else f"{figure.ratio:.2f} x"
    more = ", ".join(f"{name} {value:.1f}" for name, value in figure.more.items())
    return figure.question, figure.what, _number(figure.ours), figure.unit, ratio, beside, more


def _change(change: AgainstEarlier | None) -> str:
    return "" if change is None else f"{_number(change.then)}, now {change.times:.2f} x"


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
