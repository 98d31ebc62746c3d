"""On which terms a mutex is wanted: checked once, before anything is asked of the database."""

from __future__ import annotations

from dataclasses import dataclass

from fencerow.core.errors import InvalidInput
from fencerow.core.model.seconds import Seconds, in_seconds
from fencerow.db.text import check_text, shown

KEY_LENGTH_MAX = 500
PURPOSE_LENGTH_MAX = 200
STALE_S_MIN = 1.0  # below it a pause of the process would lose the mutex
STALE_S_MAX = 86_400.0
WAIT_S = 10.0
WAIT_BEFORE_SNOOZE_S = 1.0
DEFERRALS_MAX = 8


@dataclass(frozen=True, slots=True)
class Terms:
    """What somebody asks for. `defers`: a job puts itself back when the wait was in vain."""

    key: str
    purpose: str | None
    stale_s: float
    wait_s: float
    defers: bool
    deferrals_max: int
    deferral_jitter: bool


def terms_of(
    key: str,
    *,
    purpose: str | None,
    stale_s: Seconds,
    wait_s: Seconds | None,
    busy: str,
    deferrals_max: int,
    deferral_jitter: bool,
) -> Terms:
    """The terms, if they can be met.

    Raises:
        InvalidInput: the key, the purpose or a number cannot be used.
    """
    if busy not in ("raise", "snooze"):
        raise InvalidInput(f"busy is {shown(busy)}", "'raise' or 'snooze' is expected", "correct busy")
    defers = busy == "snooze"
    if wait_s is None:
        wait_s = WAIT_BEFORE_SNOOZE_S if defers else WAIT_S
    return Terms(
        check_text(key, "the key of a mutex", KEY_LENGTH_MAX),
        None if purpose is None else check_text(purpose, "the purpose of a mutex", PURPOSE_LENGTH_MAX),
        _seconds("stale_s", stale_s, STALE_S_MIN),
        _seconds("wait_s", wait_s, 0.0),
        defers,
        _deferrals(deferrals_max),
        deferral_jitter,
    )


def _seconds(name: str, value: object, low: float) -> float:
    value = in_seconds(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= STALE_S_MAX:
        raise InvalidInput(
            f"{name} is {shown(value)}",
            f"seconds from {low:g} to {STALE_S_MAX:g} are expected",
            f"correct {name}",
        )
    return float(value)


def _deferrals(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= 1_000:
        raise InvalidInput(
            f"deferrals_max is {shown(value)}",
            "an integer from 0 to 1000 is expected",
            "correct deferrals_max",
        )
    return value
