"""What `Client` is given for the output of jobs: `output` and `aoutput`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import TYPE_CHECKING

from fencerow.core.answering import answer
from fencerow.core.client.base import ClientBase
from fencerow.core.client.refs import Ref

if TYPE_CHECKING:
    from fencerow.core.model.seconds import Seconds
    from fencerow.output.model import Chunk


@answer
class OutputReads(ClientBase):
    """Each method has an async twin with an `a` in front."""

    def output(
        self, ref: Ref, *, after: int = 0, follow: bool = True, timeout_s: Seconds | None = None
    ) -> Iterator[Chunk]:
        """What a job emits, from the first chunk on or behind the offset `after`, until the job has ended.

            for chunk in client.output(handle.id):
                print(chunk.data, end="")

        It waits for what is still to come; with `follow=False` it ends with what is there. Whoever was cut off goes on
        with `after=`, the offset of the last chunk that came, in any process. A chunk of another `attempt` begins a new
        part. The output is kept `retention_output_s` after the end of its job.

        Raises:
            ResultTimeout: the job has not ended within `timeout_s` seconds. Read on with `after=`.
            JobNotFound: there is no such job. JobGone: it was removed meanwhile.
            InvalidInput: the id or the offset is none.
            SealKeyUnknown: it is sealed or signed, and this client has no such key.
            PayloadAltered: it is not what the job emitted.
        """
        from fencerow.output.reading import Following  # who reads none never loads it

        return iter(Following(self, ref, after, timeout_s, follow=follow))

    def aoutput(
        self, ref: Ref, *, after: int = 0, follow: bool = True, timeout_s: Seconds | None = None
    ) -> AsyncIterator[Chunk]:
        """`output` for async code: `async for chunk in client.aoutput(job_id)`."""
        from fencerow.output.reading import Following

        return aiter(Following(self, ref, after, timeout_s, follow=follow))
