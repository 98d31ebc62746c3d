"""Options of a job, given per app, queue, job or single submit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING

from fencerow.core.errors import ConfigError
from fencerow.core.model.backoff import Backoff
from fencerow.core.model.seconds import Seconds, keep_in_seconds
from fencerow.db.numbers import check_number

PRIORITY_MIN = -100
PRIORITY_MAX = 100
DAY_S = 24 * 3600.0

# name: (least, most); whole numbers where both are int.
LIMITS: dict[str, tuple[int | float, int | float]] = {
    "attempts_max": (1, 10_000),
    "timeout_s": (0.001, 30 * DAY_S),
    "retention_s": (0.0, 3650 * DAY_S),
    "priority": (PRIORITY_MIN, PRIORITY_MAX),
    "crashes_max": (1, 10_000),
    "snoozes_max": (0, 1_000_000),
    "expires_s": (0.001, 3650 * DAY_S),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Defaults:
    """One layer of options; None leaves the choice to the layer before.

    A higher `priority` is claimed first. `expires_s` counts from the submit to the start of an attempt,
    `timeout_s` bounds one attempt, `retention_s` counts from the end of the job. An `ephemeral` job leaves no
    row when it succeeds; its failures are kept.

    Raises:
        ConfigError: a value is of the wrong type or out of range.
    """

    attempts_max: int | None = None
    backoff: Backoff | Callable[[int], float] | None = None
    timeout_s: float | None = None
    retention_s: float | None = None
    priority: int | None = None
    crashes_max: int | None = None
    snoozes_max: int | None = None
    expires_s: float | None = None
    ephemeral: bool | None = None

    if TYPE_CHECKING:

        def __init__(
            self,
            *,
            attempts_max: int | None = None,
            backoff: Backoff | Callable[[int], float] | None = None,
            timeout_s: Seconds | None = None,
            retention_s: Seconds | None = None,
            priority: int | None = None,
            crashes_max: int | None = None,
            snoozes_max: int | None = None,
            expires_s: Seconds | None = None,
            ephemeral: bool | None = None,
        ) -> None: ...

    def __post_init__(self) -> None:
        keep_in_seconds(self, "timeout_s", "retention_s", "expires_s")
        for name, (low, high) in LIMITS.items():
            value = getattr(self, name)
            if value is not None:
                check_number(name, value, low, high)
        if self.ephemeral is not None and not isinstance(self.ephemeral, bool):
            raise ConfigError(
                f"ephemeral is of type {type(self.ephemeral).__name__}",
                "True or False is expected",
                "correct it",
            )
        if self.backoff is not None and not isinstance(self.backoff, Backoff) and not callable(self.backoff):
            raise ConfigError(
                f"backoff is of type {type(self.backoff).__name__}",
                "a Backoff or a function is expected",
                "pass Backoff(base_s=...)",
            )

    @staticmethod
    def merged(*layers: Defaults) -> Defaults:
        """One layer that says what all of them say together; a later one wins."""
        result = Defaults()
        for layer in layers:
            given = {field.name: getattr(layer, field.name) for field in fields(layer)}
            result = replace(result, **{name: value for name, value in given.items() if value is not None})
        return result
