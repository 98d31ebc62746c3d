"""What an attempt wants to be submitted together with its success."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, Protocol, runtime_checkable

from fencerow.core.errors import InvalidInput
from fencerow.core.model.outcome import Followed, Succeeded
from fencerow.core.model.submission import PreparedCall, Submission

FOLLOW_UPS_MAX: Final = 1_000
FOLLOW_UPS_BYTES_MAX: Final = (
    4 * 1024 * 1024
)  # of their arguments: they travel with the result in one statement
AsStored = Callable[[PreparedCall], Submission]


class StoredTogether(NamedTuple):
    """Jobs that are submitted together, under one id. `more_bytes`: what is stored beside their arguments."""

    id: str
    submissions: Sequence[Submission]
    more_bytes: int


@runtime_checkable
class PreparedJobs(Protocol):
    """What a wing makes of several calls, to be submitted together, such as a flow."""

    def as_follow_up(self) -> StoredTogether:
        """What is stored, once.

        Raises:
            InvalidInput: it cannot be stored, or was stored before.
        """
        ...


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

    def add(self, call: PreparedCall | PreparedJobs) -> str:
        """Take one, or several that belong together, and return the id.

        Raises:
            InvalidInput: it is no call, cannot be stored, or is one too many. It is not submitted.
        """
        if self._as_stored is None:
            raise InvalidInput("a follow-up was asked for", "this handler runs outside its application", "")
        if isinstance(call, PreparedJobs):
            found = call.as_follow_up()
            self._take(found.submissions, found.more_bytes)
            return found.id
        self._check_count(1)
        one = self._as_stored(call)
        self._take([one], 0)
        return one.job.id

    def _check_count(self, more: int) -> None:
        if len(self._found) + more > FOLLOW_UPS_MAX:
            raise InvalidInput(
                f"an attempt asked for more than {FOLLOW_UPS_MAX} follow-ups",
                "they are stored in one statement with its success",
                "let one follow-up submit the rest with submit_many",
            )

    def _take(self, found: Sequence[Submission], more_bytes: int) -> None:
        self._check_count(len(found))
        size = self._bytes + more_bytes + sum(each.job.args_bytes for each in found)
        if size > FOLLOW_UPS_BYTES_MAX:
            raise InvalidInput(
                f"the arguments of an attempt's follow-ups have {size} bytes",
                f"together they may have {FOLLOW_UPS_BYTES_MAX}: they are stored in one statement with its success",
                "pass where the data is, not the data",
            )
        self._found += found
        self._bytes = size

    def success(self, result: bytes) -> Succeeded:
        """What the attempt became, with this result."""
        return Followed(result, self.submissions) if self._found else Succeeded(result)
