"""A job of a flow, as its builder names it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

from fencerow.core.app.calls import Call

R_co = TypeVar("R_co", covariant=True)


@dataclass(frozen=True, slots=True)
class FlowJob(Generic[R_co]):
    """A job of a flow: what others wait for, and what a handle is asked for by. Made by `Flow.add`."""

    name: str
    call: Call[R_co]
