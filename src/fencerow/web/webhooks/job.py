"""The job that delivers one webhook: its name, its row, and when it is tried again. No I/O."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import random
from typing import Final

from fencerow.core.model.ids import new_id
from fencerow.core.model.job import NewJob, Template
from fencerow.core.model.labels import encode_headers
from fencerow.core.model.packed import Bound
from fencerow.core.model.packing import Packing
from fencerow.turns.options import OWN_KEYS

JOB: Final = "fencerow.webhook"
QUEUE: Final = "fencerow-webhooks"
TIMEOUT_S_MAX: Final = 300.0  # of one POST
# After the first failure, the second, and so on; the last one counts for all that follow.
DELAYS_S: Final = (5.0, 30.0, 120.0, 600.0, 3600.0, 3 * 3600.0, 8 * 3600.0, 86400.0)
JITTER: Final = 0.2
RETRY_AFTER_S_MAX: Final = 86400.0
ARGS: Final = b"{}"


def delay_s(failures: int, spread: Callable[[], float] = random) -> float:
    """Seconds until the next attempt after so many failures, and up to a fifth more."""
    return DELAYS_S[min(max(failures, 1), len(DELAYS_S)) - 1] * (1.0 + JITTER * spread())


NO_HEADERS: Mapping[str, str] = {}


def delivery_job(
    packing: Packing,
    *,
    attempts_max: int,
    turn: str | None,
    actor: str | None,
    headers: Mapping[str, str] = NO_HEADERS,
) -> NewJob:
    """A job that is to deliver the webhook whose row names it. It has no arguments. `headers`: the trace and the
    correlation id of the job that it tells of."""
    job_id = new_id()
    args = packing.pack(ARGS, Bound.arguments(job_id, JOB, 1))
    template = Template(
        queue=QUEUE,
        name=JOB,
        attempts_max=attempts_max,
        crashes_max=100,
        snoozes_max=1_000_000,
        timeout_s=TIMEOUT_S_MAX + 30.0,
        submitted_by=actor,
        ephemeral=True,
        strict=turn is not None,
        headers=encode_headers(headers),
    )
    return NewJob(job_id, args.decode(), len(args), template, exclusive=turn)


def turn_of(endpoint_id: str, in_order: str, key: str) -> str | None:
    """The exclusive key of a delivery whose endpoint keeps an order."""
    if in_order == "none":
        return None
    return f"{OWN_KEYS}webhook:{endpoint_id}" + (f":{key}" if in_order == "key" else "")
