"""Output as it is read: page after page, now or while it comes."""

from __future__ import annotations

import math
import time
from collections.abc import AsyncIterator, Iterator

import msgspec

from fencerow.core.client.base import ClientBase
from fencerow.core.client.refs import Ref, resolving
from fencerow.core.client.waiting import check_wait
from fencerow.core.errors import InvalidInput, JobGone, ResultTimeout
from fencerow.core.model.packed import Bound
from fencerow.core.model.seconds import Seconds
from fencerow.core.store.moves import not_found
from fencerow.db.run import Pause, Procedure, ask
from fencerow.db.text import shown
from fencerow.output.model import Chunk, ChunkGroup, opened
from fencerow.output.storing import Emitting, Output, read_output

GROUPS_MAX = 20  # in one page
PAUSE_S = 0.05  # between two looks of who follows, and half as long again each time
PAUSE_S_MAX = 0.5
AFTER_MAX = 2**63 - 1


class Page(msgspec.Struct, frozen=True):
    """Some chunks, and how the job stands. `is_all`: it has ended, and there is nothing behind them."""

    job: Emitting
    chunks: list[Chunk]
    is_all: bool


class Following:
    """Reads the output of one job from an offset on. `follow`: waits for what is still to come, until the job ends."""

    def __init__(
        self, client: ClientBase, ref: Ref, after: int, timeout_s: Seconds | None, *, follow: bool
    ) -> None:
        if type(after) is not int or not 0 <= after <= AFTER_MAX:
            raise InvalidInput(
                f"after is {shown(after)}", "the offset of a chunk is expected, or 0 for all", "correct it"
            )
        self._client = client
        self._ref = ref
        self._after = after
        self._follow = follow
        self._timeout_s = check_wait(timeout_s)
        self._until = math.inf if self._timeout_s is None else time.monotonic() + self._timeout_s
        self._job_id = ""
        self._is_late = False  # its time was over when the last chunks came, and the job goes on

    def __iter__(self) -> Iterator[Chunk]:
        return self._chunks()

    def __aiter__(self) -> AsyncIterator[Chunk]:
        return self._achunks()

    def _chunks(self) -> Iterator[Chunk]:
        page: Page | None = None
        while page is None or not self._is_over(page):
            page = self._client.run(self._page())
            yield from page.chunks

    async def _achunks(self) -> AsyncIterator[Chunk]:
        page: Page | None = None
        while page is None or not self._is_over(page):
            page = await self._client.arun(self._page())
            for chunk in page.chunks:
                yield chunk

    def _is_over(self, page: Page) -> bool:
        return page.is_all or (not self._follow and not page.chunks)

    def _page(self) -> Procedure[Page]:
        """The next chunks; with `follow` not before there are any, or the end."""
        if not self._job_id:
            self._job_id = yield from resolving(self._ref)
        pause_s = PAUSE_S
        while not self._is_late:
            found = yield from ask(read_output(self._job_id, self._after, limit=GROUPS_MAX))
            if found is None:
                raise self._missing()
            page = page_of(self._client, self._job_id, found, self._after)
            if page.chunks:
                self._after = page.chunks[-1].offset
            is_over = self._follow and time.monotonic() >= self._until
            if page.chunks or page.is_all or not self._follow:
                self._is_late = is_over and not page.job.is_final
                return page
            if is_over:
                break
            yield Pause(max(0.0, min(pause_s, self._until - time.monotonic())))
            pause_s = min(1.5 * pause_s, PAUSE_S_MAX)
        raise ResultTimeout(
            f"job {self._job_id} had not ended within {self._timeout_s:g} s",
            f"its output was read up to offset {self._after}",
            "the job goes on; read again with after=, the offset of the last chunk",
        )

    def _missing(self) -> Exception:
        if not self._after:
            return not_found(self._job_id)
        return JobGone(
            f"job {self._job_id} is gone",
            "it was removed after its end, and its output with it",
            "read sooner, or keep jobs for longer",
        )


def page_of(client: ClientBase, job_id: str, found: Output, after: int) -> Page:
    """What was read, as it was emitted.

    Raises:
        SealKeyUnknown: it is sealed or signed, and this client has no such key. PayloadAltered: it is not what the job
        emitted. MalformedPayload: it cannot be read.
    """
    chunks: list[Chunk] = []
    for group in found.groups:
        chunks += opened(group, _plain(client, job_id, group), after)
    return Page(found.job, chunks, found.job.is_final and len(found.groups) < GROUPS_MAX)


def _plain(client: ClientBase, job_id: str, group: ChunkGroup) -> bytes:
    return client.packing.unpack(group.data.encode(), Bound("output", job_id, str(group.last)))
