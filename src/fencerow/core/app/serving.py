"""What a worker of an app is asked to serve: checked before it is made, with a word where it looks like a mistake."""

from __future__ import annotations

import difflib
import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from fencerow.core.app.declare import DEFAULT_QUEUE, DeclaredBase
from fencerow.core.app.options import QUEUE_LENGTH_MAX
from fencerow.core.config import CoreConfig
from fencerow.core.errors import ConfigError, InvalidInput
from fencerow.core.model.wanted import SLOTS_MAX
from fencerow.core.model.worker_labels import checked_labels
from fencerow.db.numbers import check_number
from fencerow.db.text import check_text

log = logging.getLogger("fencerow.worker")
log_of_app = logging.getLogger("fencerow.app")


def served_queues(
    asked: Mapping[str, int] | Sequence[str] | None,
    slots: int | None,
    own: Collection[str],
    told: Collection[str],
) -> Mapping[str, int] | Sequence[str]:
    """The queues of a worker: those asked for, else those of the declared jobs (`own`). `told`: those that the app says
    something of.

    Raises:
        InvalidInput: see `check_served`.
    """
    if asked is None:
        check_served((), slots)
        # A worker that has only chores claims from a queue as any other, and finds nothing that it knows.
        return sorted(own) or [DEFAULT_QUEUE]
    named = [asked] if isinstance(asked, str) else asked
    check_served(named, slots)
    if own:
        warn_of_unknown(named, {*own, *told})
    return named


def check_served(queues: Mapping[str, int] | Sequence[str], slots: int | None) -> None:
    """Make sure that these queues can be served with so many slots.

    Raises:
        InvalidInput: a queue's name or a number of slots cannot be used, or the slots are said twice.
    """
    if not isinstance(queues, Mapping | Sequence):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidInput(
            f"queues is of type {type(queues).__name__}",
            "names of queues are expected, or a mapping of names to slots",
            'pass ["mail", "default"], or {"mail": 5, "default": 20}',
        )
    for queue in queues:
        check_text(queue, "queue", QUEUE_LENGTH_MAX)
    try:
        if slots is not None:
            check_number("slots", slots, 1, SLOTS_MAX)
        for queue, number in queues.items() if isinstance(queues, Mapping) else ():
            check_number(f"the number of slots of the queue {queue}", number, 1, SLOTS_MAX)
    except ConfigError as error:
        raise InvalidInput(error.what, error.why, error.fix) from None
    if slots is not None and isinstance(queues, Mapping):
        each = ",".join(f"{name}:{number}" for name, number in queues.items())
        raise InvalidInput(
            f"slots were given twice: {slots} for all, and {each[:200]}",
            "queues with slots of their own take no others",
            "leave out --slots (slots=), or name the queues without numbers so that they use the slots together",
        )


def carrying(config: CoreConfig, labels: Sequence[str] | None) -> CoreConfig:
    """The settings of a worker that carries these labels; None: those that the settings say.

    Raises:
        InvalidInput: one of them cannot be used.
    """
    if labels is None:
        return config
    given = (labels,) if isinstance(labels, str) else labels
    if not isinstance(given, Sequence):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidInput(f"labels is of type {type(given).__name__}", "labels are expected", 'pass ["gpu"]')
    return replace(config, labels=",".join(checked_labels(given)) or None)


def warn_of_unknown(queues: Collection[str], known: Collection[str]) -> None:
    """Say which queues no declared job goes to by itself. It is no error: a submit may name any queue."""
    for queue in queues:
        if queue in known:
            continue
        close = difflib.get_close_matches(queue, sorted(known), n=3, cutoff=0.5)
        log.warning(
            "no job of this application goes to queue %s by itself: %s. If submits choose it with "
            "using(queue=...), name it in App(queues={...}) too",
            ascii(queue)[1:-1],
            f"did you mean {' or '.join(close)}?" if close else f"its jobs go to {', '.join(sorted(known))}",
        )


def warn_of_unwrapped(jobs: Iterable[DeclaredBase[..., ..., Any, Any]]) -> None:
    """Say which jobs run without any middleware, in an app that wraps its runs but not its batches."""
    batches = [job.name for job in jobs if job.handler.batch_max is not None]
    if batches:
        log_of_app.warning(
            "on_run does not wrap batches, and there is no on_batch: %s run without either",
            ", ".join(batches),
        )
