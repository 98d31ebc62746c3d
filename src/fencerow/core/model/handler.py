"""What a worker knows of a job: how to decode its arguments, call it, and judge its failures."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from fencerow.core.model.codec import ArgumentsCodec
from fencerow.core.model.retry import RetryRule
from fencerow.core.model.value import ValueCodec

VALUE = "value"


@dataclass(frozen=True)
class Handler:
    """One registered job. `job_parameter` is the name under which the handler takes its `Job`, if it wants one.

    With `batch_max` the handler takes up to so many jobs of this name in one call, as `BatchItem`s whose value
    is the argument `VALUE`; a call that is not full waits `batch_wait_s` for more. `process` says whether it runs in
    a child process (true), never does (false), or only as a suspect (None); `memory_bytes_max` bounds the child's
    address space.
    """

    name: str
    function: Callable[..., Any]
    is_async: bool
    job_parameter: str | None
    arguments: ArgumentsCodec
    result: ValueCodec
    rule: RetryRule
    timeout_s: float | None
    batch_max: int | None = None
    batch_wait_s: float = 0.0
    process: bool | None = None
    memory_bytes_max: int | None = None
