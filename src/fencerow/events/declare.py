"""`@consumer(app, ...)`: a function that gets the events of a group, in this app's workers."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from datetime import datetime
from typing import Any, TypeVar

from fencerow.core.app.app import JobsApp
from fencerow.core.app.doors import refuse_uncallable
from fencerow.core.app.handlers import is_async, refuse_generators
from fencerow.core.errors import DeclarationError
from fencerow.core.model.backoff import Backoff
from fencerow.core.model.retry import BackoffFunction, Matchers, RetryRule
from fencerow.core.model.seconds import Seconds, in_seconds
from fencerow.core.model.signature import name_of
from fencerow.db.numbers import check_number
from fencerow.db.text import shown
from fencerow.events.chore import EventsChore, Surroundings
from fencerow.events.declared import DELIVERIES_MAX, PARTITIONS, TIMEOUT_S, Consumer
from fencerow.events.event import Event
from fencerow.events.groups import PARTITIONS_MAX, GroupStart
from fencerow.events.topics import check_group, check_patterns

F = TypeVar("F", bound=Callable[[Event], Coroutine[Any, Any, None]] | Callable[[Event], None])

BACKOFF = Backoff(base_s=1.0)


def consumer(
    app: JobsApp,
    *,
    group: str,
    topics: Sequence[str],
    start: str | int | datetime = "end",
    partitions: int = PARTITIONS,
    deliveries_max: int = DELIVERIES_MAX,
    backoff: Backoff | BackoffFunction = BACKOFF,
    retry_on: Matchers = (),
    fail_on: Matchers = (),
    timeout_s: Seconds = TIMEOUT_S,
) -> Callable[[F], F]:
    """Decorate the function that handles the events of these topics for a group, in this app's workers.

    Each event goes to one worker of the group. The first worker makes the group, and only then `start`
    counts: "end" (what is published from then on), "beginning", a position, or an aware datetime. In a topic
    `*` stands for any words. `job.succeeded`, `job.failed` and `job.cancelled` tell the end of jobs that were
    submitted after the group was made.

    A group has a number of `partitions` that cannot change; one process at a time reads each. Events of one
    key are in one partition and come in order. A delivery that fails is repeated after `backoff`, up to
    `deliveries_max`; then the event is parked. Meanwhile later events of its key wait for it, and those of
    other keys do not.

    Raises:
        DeclarationError: the group is declared twice in this app, or an option cannot be used.
        InvalidTopic: the group's name or a topic cannot be used.
    """
    name, patterns = check_group(group), tuple(check_patterns(topics))
    if type(partitions) is not int or not 1 <= partitions <= PARTITIONS_MAX:
        raise DeclarationError(
            f"partitions is {shown(partitions)}", f"an integer from 1 to {PARTITIONS_MAX} is expected", ""
        )
    limit_s = in_seconds(timeout_s)
    check_number("timeout_s", limit_s, 0.001, 86_400.0)
    rule = RetryRule(attempts_max=deliveries_max, backoff=backoff, retry_on=retry_on, fail_on=fail_on)
    begin = GroupStart.of(start)

    def declare(function: F) -> F:
        refuse_uncallable(function, "@consumer(...)")
        refuse_generators(function)
        register(
            app,
            Consumer(
                name,
                patterns,
                function,
                is_async(function),
                rule,
                partitions,
                begin,
                float(limit_s),
                packing=app._packing,  # pyright: ignore[reportPrivateUsage]
            ),
        )
        return function

    return declare


def register(app: JobsApp, declared: Consumer) -> None:
    """Put it among those that the app's events chore reads for.

    Raises:
        DeclarationError: its group is declared already.
    """
    chore = next((each for each in app.chores if isinstance(each, EventsChore)), None)
    if chore is None:
        chore = EventsChore(Surroundings(lambda: app.engine, app.config, app.telemetry), [])
        app.add_chore(chore)
    for known in chore.declared:
        if known.group == declared.group:
            raise DeclarationError(
                f"the group {declared.group!r} is read by {name_of(known.function)} already",
                "every event of a group goes to one function",
                "choose another group, or call both functions from one",
            )
    chore.declared.append(declared)
