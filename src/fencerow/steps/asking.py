"""`job.wait_for_approval`: a person is asked by an address, and the job waits for the answer, in one call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec

from fencerow.core.client.base import ClientBase
from fencerow.core.errors import InvalidInput
from fencerow.db.engine import Engine
from fencerow.db.run import Procedure
from fencerow.db.text import shown
from fencerow.steps.approvals import Approval, approving


class ApprovalAnswer(msgspec.Struct, frozen=True):
    """What a person answered. `by`: who, as they said themselves; nobody has checked it."""

    yes: bool
    by: str | None = None
    comment: str | None = None


class Question(NamedTuple):
    """What is asked for a job. `tell` takes the address to the person."""

    engine: Engine
    job_id: str
    name: str
    asks: str
    base_url: str
    expires_s: float
    tell: Callable[[Approval], Any]

    def put(self) -> None:
        """Make an address and tell it. A step: the address is in no result."""
        self.tell(ClientBase(self.engine).run(self._making()))

    async def aput(self) -> None:
        """The same for an async handler."""
        await self.tell(await ClientBase(self.engine).arun(self._making()))

    def _making(self) -> Procedure[Approval]:
        asked_by = f"job {self.job_id}"
        return approving(self.job_id, self.name, self.asks, self.base_url, self.expires_s, asked_by)


def answer_of(data: Any, name: str) -> ApprovalAnswer:
    """The answer that a signal brought.

    Raises:
        InvalidInput: it is none: somebody sent a signal of that name with other data.
    """
    try:
        return msgspec.convert(data, ApprovalAnswer)
    except msgspec.ValidationError as error:
        raise InvalidInput(
            f"the signal {shown(name)} brought {shown(data)}, which is no answer: {error}",
            'an answer is {"yes": true} or false, with "by" and "comment" as texts if somebody wrote them',
            "send other signals under another name",
        ) from None
