"""Which jobs a command means: typed filters, shared by the list and the bulk moves."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import click

from fencerow.db.engine import Engine
from fencerow.errors import InvalidInput
from fencerow.model.ids import parse_id
from fencerow.model.job import JobRecord
from fencerow.model.state import State
from fencerow.model.text import check_text
from fencerow.store import store

F = TypeVar("F", bound=Callable[..., Any])

PAGE = 500
TEXT_MAX = 256


@dataclass(frozen=True, slots=True)
class Filter:
    """The jobs that fit all that is given."""

    queue: str | None = None
    name: str | None = None
    states: tuple[State, ...] = ()
    tag: str | None = None
    scope: str | None = None
    key: str | None = None
    before: str | None = None

    def is_empty(self) -> bool:
        """Whether it means every job there is."""
        return self == Filter()

    def page(self, engine: Engine, limit: int) -> list[JobRecord]:
        """The newest of them."""
        return engine.run(
            store.list_jobs(
                queue=self.queue,
                name=self.name,
                states=self.states or None,
                scope=self.scope,
                key=self.key,
                tag=self.tag,
                before_id=self.before,
                limit=limit,
            )
        )

    def ids(self, engine: Engine) -> list[str]:
        """All of them, page by page. Those submitted meanwhile are not among them."""
        found: list[str] = []
        page = self
        while jobs := page.page(engine, PAGE):
            found += [job.id for job in jobs]
            page = replace(page, before=jobs[-1].id)
        return found


def filter_options(command: F) -> F:
    """--queue, --name, --state, --tag, --key, --scope and --before."""
    for option in (
        click.option("--queue", metavar="NAME", help="Jobs of this queue."),
        click.option("--name", metavar="JOB", help="Jobs of this name."),
        click.option(
            "--state",
            "states",
            multiple=True,
            type=click.Choice([state.value for state in State]),
            help="Jobs in this state; may be repeated.",
        ),
        click.option("--tag", metavar="TAG", help="Jobs with this tag."),
        click.option("--key", metavar="KEY", help="The jobs of this idempotency key."),
        click.option("--scope", metavar="SCOPE", help="The scope of the key."),
        click.option("--before", metavar="ID", help="Jobs older than this one: the next page."),
    ):
        command = option(command)
    return command


def made(options: dict[str, Any]) -> Filter:
    """The filter that these options describe.

    Raises:
        InvalidInput: a value cannot belong to any job.
    """
    texts = ("queue", "name", "tag", "scope", "key")
    for text in texts:
        if options[text] is not None:
            check_text(options[text], f"--{text}", TEXT_MAX)
    before = parse_id(options["before"]) if options["before"] is not None else None
    states = tuple(State(each) for each in options["states"])
    return Filter(**{text: options[text] for text in texts}, states=states, before=before)


def restricted(chosen: Filter, legal: Iterable[State], default: Iterable[State], verb: str) -> Filter:
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
