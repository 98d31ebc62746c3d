"""What an attempt wants to be submitted together with its success."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from fencerow.core.errors import InvalidInput
from fencerow.core.model.outcome import Followed, Succeeded
from fencerow.core.model.submission import PreparedCall, Submission

FOLLOW_UPS_MAX: Final = 1_000
FOLLOW_UPS_BYTES_MAX: Final = (
    4 * 1024 * 1024
)  # of their arguments: they travel with the result in one statement
AsStored = Callable[[PreparedCall], Submission]


class FollowUps:
    """Those of one attempt. `as_stored` makes of a call what is stored; None where the app is not known."""

    def __init__(self, as_stored: AsStored | None) -> None:
        self._as_stored = as_stored
        self._found: list[Submission] = []
        self._bytes = 0

    @property
    def submissions(self) -> tuple[Submission, ...]:
        """In the order in which they were asked for."""
        return tuple(self._found)

    def add(self, call: PreparedCall) -> str:
        """Take one, and return its id.

        Raises:
            InvalidInput: it is no call, cannot be stored, or is one too many. It is not submitted.
        """
        if self._as_stored is None:
            raise InvalidInput("a follow-up was asked for", "this handler runs outside its application", "")
        if len(self._found) >= FOLLOW_UPS_MAX:
            raise InvalidInput(
                f"an attempt asked for more than {FOLLOW_UPS_MAX} follow-ups",
                "they are stored in one statement with its success",
                "let one follow-up submit the rest with submit_many",
            )
        found = self._as_stored(call)
        size = self._bytes + found.job.args_bytes
        if size > FOLLOW_UPS_BYTES_MAX:
            raise InvalidInput(
                f"the arguments of an attempt's follow-ups have {size} bytes",
                f"together they may have {FOLLOW_UPS_BYTES_MAX}: they are stored in one statement with its success",
                "pass where the data is, not the data",
            )
        self._found.append(found)
        self._bytes = size
        return found.job.id

    def success(self, result: bytes) -> Succeeded:
        """What the attempt became, with this result."""
        return Followed(result, self.submissions) if self._found else Succeeded(result)
