"""What a handler raises to say itself how its attempt ends."""

from __future__ import annotations

from fencerow.core.errors import InvalidInput
from fencerow.core.model.seconds import Seconds, in_seconds
from fencerow.db.text import shown

DELAY_S_MAX = 366 * 24 * 3600.0


class Retry(Exception):
    """Let this attempt count as failed and try again `after_s` seconds later.

    Without `after_s` the job's backoff decides. If no attempt is left, the job fails.
    """

    retryable = True

    def __init__(self, after_s: Seconds | None = None, reason: str = "") -> None:
        super().__init__(reason or "the job asked for another attempt")
        self.after_s = None if after_s is None else check_delay(after_s, "Retry(after_s)", zero=True)
        self.reason = reason


class Fail(Exception):
    """End the job as failed now, even if attempts are left."""

    retryable = False

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Snooze(Exception):
    """Put the job back for `delay_s` seconds. This counts as no failure, and is possible `snoozes_max` times."""

    retryable = True

    def __init__(self, delay_s: Seconds, reason: str = "") -> None:
        super().__init__(reason or "the job asked for a pause")
        # A pause of nothing would be a hot loop.
        self.delay_s = check_delay(delay_s, "Snooze(delay_s)", zero=False)
        self.reason = reason


class Suspend(BaseException):
    """Raised in a handler by what makes its job wait: a wing has noted for what, and wakes it. `reason`: for people.

    No `Exception`: a handler that catches all errors must not go on as if it had waited.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(f"the job waits: {reason}")
        self.reason = reason


def check_delay(delay_s: object, what: str, *, zero: bool) -> float:
    """A finite number of seconds, at most a year.

    Raises:
        InvalidInput: it is none.
    """
    delay_s = in_seconds(delay_s)
    if isinstance(delay_s, bool) or not isinstance(delay_s, (int, float)):
        found = f"of type {type(delay_s).__name__}"
    elif (zero and delay_s == 0) or 0 < delay_s <= DELAY_S_MAX:
        return float(delay_s)
    else:
        found = shown(delay_s, 40)
    raise InvalidInput(
        f"{what} is {found}",
        f"seconds {'from' if zero else 'above'} 0 up to {DELAY_S_MAX:.0f} are expected",
        "pass a number of seconds, or a timedelta",
    )


for _kind in (Retry, Fail, Snooze):
    _kind.__module__ = "fencerow"  # the name that is stored with a failed job is the one people import
