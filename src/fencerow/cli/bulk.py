"""One verb over jobs by id or by filter: count first, ask a person at a terminal, then move them batch by batch."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType
from typing import Any, TypeVar

import click

from fencerow.cli.columns import COLUMNS, row_of
from fencerow.cli.filters import filter_options, ids_of, made, placed, restricted
from fencerow.client import Client
from fencerow.command import output
from fencerow.command.database import actor, in_person, times, working
from fencerow.command.options import CommandOptions, usual_options
from fencerow.command.progress import progress
from fencerow.core.errors import InvalidInput
from fencerow.core.model.state import State
from fencerow.core.store import store
from fencerow.db.engine import Engine
from fencerow.db.errors import exits
from fencerow.db.text import amount, check_text
from fencerow.operators import many
from fencerow.operators.finding import JobFilter
from fencerow.operators.many import JobDone, ManyMove
from fencerow.operators.prefixes import IdRange, jobs_meant, parse_prefix

F = TypeVar("F", bound=Callable[..., Any])
Making = Callable[[str | None, str | None], ManyMove]  # of who asks, and why

REASON_MAX = 500
SHOWN_MAX = 15  # of a dry run, so that a window of 24 lines has them all


@dataclass(slots=True)
class Work:
    """What became of the jobs so far. `stopped`: somebody pressed Ctrl-C, or `error` ended it before all were moved."""

    whole: int
    done: list[JobDone] = field(default_factory=list)
    stopped: bool = False
    error: BaseException | None = None

    @property
    def not_reached(self) -> int:
        """How many jobs nobody tried to move."""
        return self.whole - len(self.done)


@dataclass(frozen=True, slots=True)
class Bulk:
    """A verb for many jobs: how it moves them, from which states it leaves, which a filter means by itself."""

    verb: str
    move: Making
    legal: Iterable[State]
    default: Iterable[State]

    def run(self, asked: CommandOptions, options: dict[str, Any]) -> int:
        """Do it, or with --dry-run only count; returns the exit code: 1 if any job was not moved."""
        meant = [parse_prefix(each) for each in options.pop("ids")]
        dry_run, yes, reason = options.pop("dry_run"), options.pop("yes"), options.pop("reason")
        if reason is not None:
            check_text(reason, "--reason", REASON_MAX)
        chosen = made(options)
        self._refuse_unclear(meant, chosen)
        with working(asked) as engine:
            if meant:
                ids = Client(engine).run(jobs_meant(meant))
            else:
                chosen = placed(engine, chosen, options["before"])
                ids = ids_of(engine, restricted(chosen, self.legal, self.default, self.verb))
            if dry_run:
                return self._counted(engine, ids, asked)
            if not _confirmed(self.verb, ids, by_id=chosen.is_empty(), yes=yes):
                output.warn("nothing was changed")
                return exits.FAILED
            work = self._moved(engine, ids, self.move(actor(asked.config()), reason), asked)
        code = self._told(work, asked, by_id=chosen.is_empty())
        if work.error is not None:
            raise work.error
        return code

    def _refuse_unclear(self, ids: Sequence[IdRange], chosen: JobFilter) -> None:
        if ids and not chosen.is_empty():
            raise InvalidInput(
                "both ids and a filter were given",
                "give one of them to say which jobs you mean",
                "leave one out",
            )
        if not ids and chosen.is_empty():
            raise InvalidInput(
                "neither an id nor a filter was given",
                "a command without both never means all jobs",
                f"name jobs, or filter: fencerow jobs {self.verb} --queue NAME --dry-run",
            )

    def _counted(self, engine: Engine, ids: list[str], asked: CommandOptions) -> int:
        """How many they are, and which: the first of them as a list shows them, and all ids for programs."""
        if asked.json:
            output.say_json({"verb": self.verb, "dry_run": True, "jobs": len(ids), "ids": ids})
            return exits.OK
        found = engine.run(store.read(ids[:SHOWN_MAX]))
        if found:
            at = times(engine, asked)
            output.table(COLUMNS, [row_of(found[each], at, COLUMNS) for each in ids if each in found])
        if len(ids) > SHOWN_MAX:
            output.say(f"and {len(ids) - SHOWN_MAX} more; --json has all ids")
        output.say(f"{amount(len(ids), 'job')} would be changed by {self.verb}; nothing was changed")
        return exits.OK

    def _moved(self, engine: Engine, ids: list[str], move: ManyMove, asked: CommandOptions) -> Work:
        """Move them in batches. A first Ctrl-C lets the batch that is under way come to its end."""
        work = Work(len(ids))
        client = Client(in_person(engine, asked))
        steps = len(ids) if len(ids) > many.BATCH else 0  # one batch is done before anybody has read a bar
        with interruptible(work), progress(self.verb, steps, json=asked.json) as bar:
            for at in range(0, len(ids), many.BATCH):
                if work.stopped:
                    break
                try:
                    client.run(many.moving(ids[at : at + many.BATCH], move, work.done))
                except Exception as error:  # what was done must be told, whatever ended it
                    work.error = error
                    break
                bar.to(len(work.done))
        client.close()
        return work

    def _told(self, work: Work, asked: CommandOptions, *, by_id: bool) -> int:
        done, left = work.done, [each for each in work.done if each.error]
        if asked.json:
            output.say_json(
                {
                    "verb": self.verb,
                    "dry_run": False,
                    "jobs": len(done) - len(left),
                    "not_reached": work.not_reached,
                    "outcomes": [
                        {
                            "id": each.id,
                            "outcome": each.outcome,
                            "error": each.error.code if each.error else None,
                        }
                        for each in done
                    ],
                }
            )
        elif by_id:
            for each in done:
                if not each.error:
                    output.say(f"{each.id}  {each.outcome}")
        else:
            output.say(f"{amount(len(done) - len(left), 'job')}: {self.verb} done")
        for each in left[:10]:
            if each.error:
                output.report(each.error)
        if len(left) > 10:
            output.warn(f"and {len(left) - 10} more were left")
        if work.not_reached:
            unreached = amount(work.not_reached, "job was", "jobs were")
            output.warn(f"{unreached} not reached; run the command again for the rest")
        if work.stopped and work.not_reached:
            return exits.INTERRUPTED
        return exits.FAILED if left else exits.OK


@contextmanager
def interruptible(work: Work) -> Iterator[None]:
    """The first Ctrl-C stops the work after the batch that is under way; the second interrupts as ever."""

    def stop(_number: int, _frame: FrameType | None) -> None:
        work.stopped = True
        signal.signal(signal.SIGINT, former)
        output.warn("stopping after this batch; press Ctrl-C again to interrupt it")

    former = signal.signal(signal.SIGINT, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, former)


def _confirmed(verb: str, ids: list[str], *, by_id: bool, yes: bool) -> bool:
    """Whether to go ahead: a person at a terminal is asked before a filter moves anything."""
    if by_id or yes or not ids or not sys.stdin.isatty():
        return True
    return click.confirm(f"{verb} {amount(len(ids), 'job')}?", err=True)


def bulk_options(command: F) -> F:
    """Ids or filters, --dry-run, --yes and --reason."""
    for option in reversed(
        (
            click.argument("ids", metavar="[ID]...", nargs=-1),
            click.option(
                "--dry-run", is_flag=True, help="Only say which jobs this would change, and how many."
            ),
            click.option("--yes", is_flag=True, help="Do not ask."),
            click.option("--reason", metavar="TEXT", help="Why; kept in the job's timeline."),
            filter_options,
            usual_options,
        )
    ):
        command = option(command)
    return command
