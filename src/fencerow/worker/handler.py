"""What a worker knows of a job: how to decode its arguments, call it, and judge its failures."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from fencerow.model.codec import ArgumentsCodec, ValueCodec
from fencerow.model.retry import RetryRule


@dataclass(frozen=True)
class Handler:
    """One registered job. `job_parameter` is the name under which the handler takes its `Job`, if it wants one."""

    name: str
    function: Callable[..., Any]
    is_async: bool
    job_parameter: str | None
    arguments: ArgumentsCodec
    result: ValueCodec
    rule: RetryRule
    timeout_s: float | None
