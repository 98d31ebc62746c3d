"""A job's life as stretches of one state after the other, for a picture. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from fencerow.core.model.job import Happening

WIDTH = 1_000.0
LEAST = 3.0  # what is short is seen, too
STRETCHES_MAX = 200
# What a happening of a job's timeline makes of it; of what is not here, it stays in its state.
BECOMES: Mapping[str, str] = MappingProxyType(
    {
        "submitted": "queued",
        "claimed": "running",
        "yielded": "waiting",
        "suspended": "waiting",
        **dict.fromkeys(
            ("retried", "timed_out", "crashed", "reclaimed", "released", "snoozed", "revived", "woken", "fell_back"),
            "queued",
        ),
        **dict.fromkeys(("failed", "expired", "unknown"), "failed"),
        **dict.fromkeys(("cancelled", "stopped"), "cancelled"),
        "succeeded": "succeeded",
    }
)  # fmt: skip
LASTS = frozenset({"waiting", "queued", "running"})


@dataclass(frozen=True, slots=True)
class Stretch:
    """So long in one state. `x` and `width` are parts of `WIDTH`."""

    state: str
    attempt: int
    from_us: int
    until_us: int
    x: float
    width: float

    @property
    def seconds(self) -> float:
        """How long it was."""
        return (self.until_us - self.from_us) / 1e6


@dataclass(frozen=True, slots=True)
class LifeShown:
    """All stretches, in order, and the state at their end."""

    stretches: Sequence[Stretch]
    state: str

    def seconds(self, state: str) -> float:
        """How long it was in this state, of all stretches together."""
        return sum(each.seconds for each in self.stretches if each.state == state)


def life_of(happenings: Sequence[Happening], *, until_us: int, waits: bool = False) -> LifeShown:
    """The life until an instant. `waits`: it is still waiting for its turn, or for a label."""
    spans: list[tuple[str, int, int, int]] = []
    state, since_us, attempt = "queued", happenings[0].at_us, 0
    for each in happenings:
        becomes = BECOMES.get(each.kind)
        if becomes is None or (becomes == state and each.kind != "claimed"):
            continue
        if state in LASTS and each.at_us > since_us:
            spans.append((state, attempt, since_us, each.at_us))
        state, since_us, attempt = becomes, each.at_us, each.attempt
    if waits:
        state = "waiting"
    if state in LASTS:
        spans.append((state, attempt, since_us, max(until_us, since_us)))
    return LifeShown(_placed(spans[-STRETCHES_MAX:]), state)


def _placed(spans: Sequence[tuple[str, int, int, int]]) -> list[Stretch]:
    if not spans:
        return []
    first_us, last_us = spans[0][2], spans[-1][3]
    scale = WIDTH / max(last_us - first_us, 1)
    return [
        Stretch(
            state,
            attempt,
            from_us,
            until_us,
            round((from_us - first_us) * scale, 1),
            round(max((until_us - from_us) * scale, LEAST), 1),
        )
        for state, attempt, from_us, until_us in spans
    ]
