"""What a change of a job is made of and what it tells: new arguments, and what differs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import msgspec

from fencerow.core.model.job import At
from fencerow.core.model.seconds import Seconds
from fencerow.core.model.value import PAYLOAD_BYTES_MAX, ValueType, check_size

NOTHING: dict[str, Any] = {}
DATA = ValueType.of(dict[str, Any], "arguments")  # by the names of parameters


@dataclass(frozen=True, slots=True)
class NewArguments:
    """Arguments to store, as JSON. `version`: that of their form; None: that of the arguments before.

    `column_of`: what a submit with some arguments, these or others, says in a column of its job; None where the job's
    declaration is not at hand to tell it. `packed`: these as they are stored with the job of an id; `opened`: stored
    ones of the job of an id, in a version, as JSON; None where nothing is known of how the app stores them.
    """

    text: str
    version: int | None = None
    column_of: Callable[[str, str], Any] | None = None
    packed: Callable[[str], str] | None = None
    opened: Callable[[str, str, int], str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedChange:
    """What a caller says that a job shall be, unchecked; what is None stays as it is."""

    run_at: datetime | None = None
    delay_s: Seconds | None = None
    run_now: bool = False
    priority: int | None = None
    queue: str | None = None
    args: Mapping[str, Any] | None = None


class JobChanged(msgspec.Struct, frozen=True):
    """A job that was changed. `changes`: what differs, by column, as it was and as it is; empty if nothing did.

    Instants are microseconds since 1970 (`run_at_us`). Of arguments the sizes are told (`args_bytes`), not the values.
    """

    id: str
    state: str
    queue: str
    priority: int
    run_at_us: int
    changes: dict[str, tuple[Any, Any]] = NOTHING
    lane: str = ""  # the name of the lane in which it is queued

    run_at = At("run_at_us")


ArgumentsEncoder = Callable[[str, Mapping[str, Any]], NewArguments]


def plain_arguments(name: str, given: Mapping[str, Any]) -> NewArguments:
    """Arguments that nobody checks, in the version of those before: here nothing is known of the job.

    Raises:
        InvalidPayload, PayloadTooLarge: they cannot be kept.
    """
    raw = DATA.pack(dict(given), "arguments")
    check_size(raw, f"the arguments of {name}", PAYLOAD_BYTES_MAX)
    return NewArguments(raw.decode())
