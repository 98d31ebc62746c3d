"""What a person wants changed of a job that nobody runs: when it is due, its priority, its queue, its arguments."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

from fencerow.core.errors import ConfigError, InvalidArguments, InvalidInput
from fencerow.core.model.change import ArgumentsEncoder, NewArguments
from fencerow.core.model.control import check_delay
from fencerow.core.model.defaults import PRIORITY_MAX, PRIORITY_MIN
from fencerow.core.model.instants import instant_us
from fencerow.core.model.seconds import Seconds
from fencerow.core.model.wanted import QUEUE_LENGTH_MAX
from fencerow.db.numbers import check_number
from fencerow.db.text import check_text


@dataclass(frozen=True, slots=True)
class JobChange:
    """What shall become of a job; None leaves it as it is.

    At most one of the first three is given. `at_once`: due now, but a job that is due already keeps its place.
    `arguments` encodes the new ones for the job of a name.
    """

    run_at_us: int | None = None
    delay_s: float | None = None
    at_once: bool = False
    priority: int | None = None
    queue: str | None = None
    arguments: Callable[[str], NewArguments] | None = None

    @property
    def is_absolute(self) -> bool:
        """Whether it says what the job shall be without looking at the clock: made twice it is the same change."""
        return self.delay_s is None and not self.at_once


def job_change(
    *,
    run_at: datetime | None = None,
    delay_s: Seconds | None = None,
    run_now: bool = False,
    priority: int | None = None,
    queue: str | None = None,
    arguments: Callable[[str], NewArguments] | None = None,
) -> JobChange:
    """The change that a caller wrote.

    Raises:
        InvalidInput: nothing is to be changed, two say when the job is due, or a value cannot be used.
    """
    times = [name for name, given in _times(run_at, delay_s, run_now) if given]
    if len(times) > 1:
        raise InvalidInput(
            f"{' and '.join(times)} were given", "each says when the job is due", "pass one of them"
        )
    if not times and priority is None and queue is None and arguments is None:
        raise InvalidInput(
            "nothing was given to change",
            "a change says when the job is due, its priority, its queue or its arguments",
            "pass run_at, delay_s, priority, queue or args",
        )
    return JobChange(
        run_at_us=None if run_at is None else instant_us(run_at, "run_at"),
        delay_s=None if delay_s is None else check_delay(delay_s, "delay_s", zero=True),
        at_once=run_now,
        priority=None if priority is None else _priority(priority),
        queue=None if queue is None else check_text(queue, "queue", QUEUE_LENGTH_MAX),
        arguments=arguments,
    )


def _times(run_at: object, delay_s: object, run_now: bool) -> list[tuple[str, bool]]:
    return [("run_at", run_at is not None), ("delay_s", delay_s is not None), ("run_now", run_now)]


def _priority(given: int) -> int:
    try:
        check_number("priority", given, PRIORITY_MIN, PRIORITY_MAX)
    except ConfigError as error:
        raise InvalidInput(error.what, error.why, error.fix) from None
    return given


def new_arguments(
    given: Mapping[str, Any] | None, encoder: ArgumentsEncoder
) -> Callable[[str], NewArguments] | None:
    """The new arguments by the name of the job that gets them, if there are any.

    Raises:
        InvalidArguments: what was given are no arguments by name.
    """
    if given is None:
        return None
    if not isinstance(given, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidArguments(
            f"args is of type {type(given).__name__}",
            "arguments are passed by name",
            "pass a dict: {'path': 'invoice.pdf'}",
        )
    return partial(_encoded, given, encoder)


def _encoded(given: Mapping[str, Any], encoder: ArgumentsEncoder, name: str) -> NewArguments:
    return encoder(name, given)
