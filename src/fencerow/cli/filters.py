"""Which jobs a command means: typed filters, shared by the list and the bulk moves."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, TypeVar

import click

from fencerow.cli.arguments import pairs_of
from fencerow.client import Client
from fencerow.command.completing import job_names, queue_names
from fencerow.core.errors import InvalidInput
from fencerow.core.model.job import JobRecord
from fencerow.core.model.state import State
from fencerow.db.engine import Engine
from fencerow.db.text import check_text
from fencerow.operators.finding import JobFilter, listing
from fencerow.operators.prefixes import job_meant, parse_prefix

F = TypeVar("F", bound=Callable[..., Any])

PAGE = 500
TEXT_MAX = 256


def page(engine: Engine, chosen: JobFilter, limit: int) -> list[JobRecord]:
    """The newest of them."""
    return Client(engine).run(listing(chosen, limit))


def ids_of(engine: Engine, chosen: JobFilter) -> list[str]:
    """All of them, page by page. Those submitted meanwhile are not among them."""
    found: list[str] = []
    while jobs := page(engine, chosen, PAGE):
        found += [job.id for job in jobs]
        chosen = replace(chosen, before_id=jobs[-1].id)
    return found


def filter_options(command: F) -> F:
    """--queue, --name, --state, --tag, --meta, --key, --scope and --before."""
    for option in reversed(
        (
            click.option("--queue", metavar="NAME", shell_complete=queue_names, help="Jobs of this queue."),
            click.option("--name", metavar="JOB", shell_complete=job_names, help="Jobs of this name."),
            click.option(
                "--state",
                "states",
                multiple=True,
                type=click.Choice([state.value for state in State]),
                help="Jobs in this state; may be repeated.",
            ),
            click.option(
                "--tag", "tags", metavar="TAG", multiple=True, help="Jobs with this tag; may be repeated."
            ),
            click.option(
                "--meta",
                metavar="KEY=VALUE",
                multiple=True,
                help="Jobs with this metadata; may be repeated. The value is JSON, or else text.",
            ),
            click.option("--key", metavar="KEY", help="The jobs of this idempotency key."),
            click.option("--scope", metavar="SCOPE", help="The scope of the key; by default the job's name."),
            click.option("--before", metavar="ID", help="Jobs submitted before this one: the next page."),
        )
    ):
        command = option(command)
    return command


def made(options: dict[str, Any]) -> JobFilter:
    """The filter that these options describe.

    Raises:
        InvalidInput: a value cannot belong to any job.
    """
    for text in ("queue", "name", "scope", "key"):
        if options[text] is not None:
            check_text(options[text], f"--{text}", TEXT_MAX)
    return JobFilter(
        queue=options["queue"],
        name=options["name"],
        states=tuple(State(each) for each in options["states"]),
        tags=options["tags"],
        metadata=pairs_of(options["meta"], "--meta") if options["meta"] else None,
        scope=options["scope"],
        key=options["key"],
        before_id=parse_prefix(options["before"]).first if options["before"] is not None else None,
    )


def placed(engine: Engine, chosen: JobFilter, before: str | None) -> JobFilter:
    """The filter with the job that --before means, now that it can be looked up.

    Raises:
        AmbiguousId, JobNotFound: it is the beginning of several ids, or of none.
    """
    if before is None:
        return chosen
    return replace(chosen, before_id=Client(engine).run(job_meant(parse_prefix(before))))


def restricted(chosen: JobFilter, legal: Iterable[State], default: Iterable[State], verb: str) -> JobFilter:
    """The filter, with the states that a move leaves from; others are refused rather than passed over.

    Raises:
        InvalidInput: a state was asked for from which the move is illegal.
    """
    for state in chosen.states:
        if state not in set(legal):
            raise InvalidInput(
                f"--state {state} was asked for",
                f"nobody can {verb} a {state} job",
                f"leave out --state {state}",
            )
    return chosen if chosen.states else replace(chosen, states=tuple(default))
