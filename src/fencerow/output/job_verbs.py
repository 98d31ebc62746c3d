"""What a running job is given for its output: `emit`."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable
from typing import TYPE_CHECKING, Any

from fencerow.core.answering import answer
from fencerow.core.client.base import waited
from fencerow.core.worker.context import Done, Job
from fencerow.core.worker.transaction import JobTransaction

if TYPE_CHECKING:
    from fencerow.output.writer import Writer

log = logging.getLogger("fencerow.worker")


@answer
class OutputVerbs(Job):
    """A running job that emits."""

    __slots__ = ()

    def emit(self, chunk: Any) -> Awaitable[None]:
        """Append a chunk to the job's output: text, bytes or JSON data, such as a token of a language model.

            async for token in stream:
                await job.emit(token)         # in a plain handler without await

        Others read it while it comes: `client.output(job_id)`, `fencerow output`, server-sent events. Chunks gather and
        are written together, within `output_write_s` and before the attempt ends; the first one at once. Where much has
        gathered, this waits for the write. A later attempt does not take back what this one has emitted: it begins a
        new part of the stream, which readers can tell by `chunk.attempt`.

        Raises:
            ChunkRefused: the chunk has more than 64 KiB as JSON, or cannot be kept. It was not taken.
            OutputSpent: the job has emitted 100,000 chunks, or 16 MiB, already.
            OutputNotPossible: the job is ephemeral, or `job.transaction()` is open.
            LeaseLost: this attempt no longer holds the job. Stop working on it.
        """
        if self.opened_transaction is not None and self.opened_transaction.is_open:
            from fencerow.output.errors import OutputNotPossible

            raise OutputNotPossible(
                "job.emit is called while job.transaction() is open",
                "output is read before that commits, and must stand if it does not",
                "emit before, and write last in job.transaction()",
            )
        writer = self._writer()
        writer.add(chunk)
        if not writer.waits:
            return Done()
        if self._on_loop():
            # A task at once, not a coroutine: a forgotten await must not be a silent loss.
            return asyncio.ensure_future(writer.flush())
        waited(asyncio.run_coroutine_threadsafe(writer.flush(), self._loop), None)
        return Done()

    def transaction(self, *, session: Any = None) -> JobTransaction[Any]:
        found = super().transaction(session=session)
        writer = self._known_writer()
        if writer is not None and not self._on_loop():
            # A plain handler's thread commits by itself: what was emitted must be there before.
            waited(asyncio.run_coroutine_threadsafe(writer.flush(), self._loop), None)
        return found

    transaction.__doc__ = Job.transaction.__doc__

    async def settle(self, *, failed: bool) -> None:
        """Write what is held back of the output, now that the handler has ended. For the worker."""
        writer = self._known_writer()
        if writer is None or (failed and writer.is_broken):
            return
        inside = self._inside()
        try:
            await writer.finish(inside.asession if inside is not None else None)
        except Exception as error:
            if not failed:
                raise
            log.warning("job %s attempt %d: the last of its output is lost: %s", self.id, self.attempt, error)

    def _known_writer(self) -> Writer | None:
        found: Writer | None = None if self.kept is None else self.kept.get("output")
        return found

    def _writer(self) -> Writer:
        found = self._known_writer()
        if found is None:
            from fencerow.output.settings import OutputSettings
            from fencerow.output.writer import Writer  # who emits nothing never loads it

            if self.kept is None:
                self.kept = {}
            made = Writer(self._attempt, self._engine, self._loop, OutputSettings.of(self._config))
            found = self.kept.setdefault("output", made)  # of two threads one
        return found
