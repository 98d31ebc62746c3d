"""What a caller says of a job to be submitted, and how it becomes the options of `using`."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, UnsetType

from fencerow.core.errors import ConfigError, InvalidInput
from fencerow.core.model.backoff import Backoff
from fencerow.handovers.options import HandoverTo
from fencerow.handovers.terms import DEFAULT_RECEIVER, HOLD_S
from fencerow.unique.options import Unique
from fencerow.web.gateway.shapes import Given, Name

NOT_OPTIONS = ("job", "args")


class BackoffGiven(Given, frozen=True):
    """How long to wait before a retry: `base_s`, times `factor` for each further failure, at most `cap_s`."""

    base_s: float = 5.0
    factor: float = 2.0
    cap_s: float = 300.0
    jitter: float = 0.2


class UniqueGiven(Given, frozen=True):
    """What makes submits the same: `by` is true (the job and its arguments) or a key. See docs/guide/unique.md."""

    by: bool | str
    states: list[str] | None = None
    period_s: float | None = None
    on_conflict: str = "keep"
    scope: str | None = None


class HandoverGiven(Given, frozen=True):
    """To whom the job's end is handed over, in the order of which key. See docs/guide/handover.md."""

    key: str
    receiver: str = DEFAULT_RECEIVER
    wait_for_earlier_s: float = HOLD_S


class Submit(Given, frozen=True):
    """A job to be done. What is left out is as the job declares it; docs/guide.md has what each option means."""

    job: Name
    args: dict[str, Any] = msgspec.field(default_factory=dict)
    id: (
        Annotated[str, Meta(description="an id of your own, a UUID, so that you can repeat the submit")]
        | UnsetType
    ) = UNSET
    key: Annotated[str, Meta(description="the idempotency key, where no header gives it")] | UnsetType = UNSET
    scope: str | UnsetType = UNSET
    key_lifetime_s: float | UnsetType = UNSET
    queue: str | UnsetType = UNSET
    priority: int | UnsetType = UNSET
    delay_s: float | UnsetType = UNSET
    run_at: Annotated[datetime, Meta(tz=True)] | UnsetType = UNSET
    attempts_max: int | UnsetType = UNSET
    backoff: BackoffGiven | UnsetType = UNSET
    timeout_s: float | UnsetType = UNSET
    expires_s: float | UnsetType = UNSET
    retention_s: float | UnsetType = UNSET
    ephemeral: bool | UnsetType = UNSET
    exclusive: str | UnsetType = UNSET
    exclusive_at_once: int | UnsetType = UNSET
    strict: bool | UnsetType = UNSET
    limits: list[str] | UnsetType = UNSET
    share: str | UnsetType = UNSET
    affinity: str | UnsetType = UNSET
    affinity_wait_s: float | UnsetType = UNSET
    unique: bool | str | UniqueGiven | UnsetType = UNSET
    debounce_s: float | UnsetType = UNSET
    debounce_max_s: float | UnsetType = UNSET
    throttle_s: float | UnsetType = UNSET
    handover: bool | str | HandoverGiven | UnsetType = UNSET
    tags: list[str] | UnsetType = UNSET
    metadata: dict[str, Any] | UnsetType = UNSET


class Batch(Given, frozen=True):
    """Jobs to be stored together, all or none."""

    jobs: Annotated[list[Submit], Meta(min_length=1, max_length=1_000)]


def options_of(wanted: Submit) -> dict[str, Any]:
    """The options of `using`, of which a caller gives what they like.

    Raises:
        InvalidInput: one of them cannot be used.
    """
    return {
        name: _option(value)
        for name in Submit.__struct_fields__
        if name not in NOT_OPTIONS and (value := getattr(wanted, name)) is not UNSET
    }


def _option(given: Any) -> Any:
    """What the library takes for it."""
    if not isinstance(given, Given):
        return given
    fields = msgspec.structs.asdict(given)
    if isinstance(given, HandoverGiven):
        return HandoverTo(given.receiver, given.key, given.wait_for_earlier_s)
    if isinstance(given, UniqueGiven):
        return Unique(**fields)
    try:
        return Backoff(**fields)
    except ConfigError as error:
        raise InvalidInput(error.what, error.why, error.fix) from None
