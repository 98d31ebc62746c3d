"""What a job of a flow reads of those it waited for: how they ended, and their results."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

from fencerow.core.app.submitter import Submittable
from fencerow.core.client.base import ClientBase
from fencerow.core.client.handle import stored_error
from fencerow.core.model.describe import ErrorRecord
from fencerow.core.model.state import State
from fencerow.db.text import shown
from fencerow.flows.errors import NoFlowResult
from fencerow.flows.looking import FlowJobRecord

R = TypeVar("R")


class FlowInputs(Mapping[str, FlowJobRecord]):
    """The jobs for which a job of a flow waited, by their names there; of a callback all jobs of its flow.

    They are kept with the flow, so they are there when retention has removed the jobs.
    """

    def __init__(self, client: ClientBase, found: list[FlowJobRecord]) -> None:
        self._client = client
        self._found = {each.name: each for each in found}

    def __getitem__(self, name: str) -> FlowJobRecord:
        return self._found[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)

    def result(self, job: Submittable[..., R], name: str) -> R:
        """What that job returned, as the declared job says it: `inputs.result(fetch, "page 1")`.

        Raises:
            NoFlowResult: there is none of that name, or it did not succeed.
            MalformedPayload: it does not fit the type that the job declares.
        """
        found, stored = self._succeeded(name)
        return _decoded(job, self._client.plain_result(found.id, stored))

    async def aresult(self, job: Submittable[..., R], name: str) -> R:
        """`result` for async code."""
        found, stored = self._succeeded(name)
        return _decoded(job, await self._client.aplain_result(found.id, stored))

    def results(self, job: Submittable[..., R]) -> dict[str, R]:
        """What all jobs of this declaration returned that succeeded, by their names in the flow."""
        return {name: self.result(job, name) for name in self._of(job)}

    async def aresults(self, job: Submittable[..., R]) -> dict[str, R]:
        """`results` for async code."""
        return {name: await self.aresult(job, name) for name in self._of(job)}

    def error(self, name: str) -> ErrorRecord | None:
        """What ended that job, if it failed."""
        found = self._found[name]
        return stored_error(found.error_text) if found.state is State.FAILED else None

    def _of(self, job: Submittable[..., Any]) -> list[str]:
        wanted = job.call_later().recipe.declaration.name
        return [
            name for name, each in self._found.items() if each.job == wanted and each.state is State.SUCCEEDED
        ]

    def _succeeded(self, name: str) -> tuple[FlowJobRecord, bytes]:
        found = self._found.get(name)
        if found is None or found.state is not State.SUCCEEDED:
            raise NoFlowResult(
                f"there is no result of {shown(name)}",
                f"it is {found.state}"
                if found is not None
                else f"this job waited for {shown(sorted(self._found), 200)}",
                "look at inputs[name].state first, or name it in needs=",
            )
        return found, (found.result_text or "null").encode()


def _decoded(job: Submittable[..., R], plain: bytes) -> R:
    decoded: R = job.call_later().recipe.decode(plain)
    return decoded
