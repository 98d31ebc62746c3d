"""Plain submits of one event loop in one insert: those that arrive while one is under way go with the next.

The first goes at once; nobody waits for a timer.
"""

from __future__ import annotations

import asyncio
import copy
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from weakref import proxy

from fencerow.core.errors import DatabaseError, OutcomeUnknown, StorageFull
from fencerow.core.model.submission import Submission
from fencerow.db.apart import apart

IDS_SHOWN = 3
GROUP_ROWS_MAX = 500
GROUP_BYTES_MAX = 4 * 1024 * 1024


def in_doubt(ids: Sequence[str], why: str) -> OutcomeUnknown:
    """The error for callers of a submit that may have been stored or not; `ids` are theirs and nobody else's."""
    shown = ", ".join(ids[:IDS_SHOWN]) + (f" and {len(ids) - IDS_SHOWN} more" if len(ids) > IDS_SHOWN else "")
    return OutcomeUnknown(
        f"it is unknown whether the submit of {shown} was stored",
        why,
        "submit again under the same id or key, or look the id up",
        job_ids=tuple(ids),
    )


class SubmitGroup:
    """Plain submissions of one event loop. `send` stores a batch, all or none."""

    def __init__(
        self, send: Callable[[Sequence[Submission]], Awaitable[object]], loop: asyncio.AbstractEventLoop
    ) -> None:
        self._send = send
        self._loop = proxy(loop)  # known already: asking for the running one is a system call
        self._waiting: deque[tuple[Submission, asyncio.Future[None]]] = deque()
        self._sending: asyncio.Task[None] | None = None

    def submit(self, submission: Submission) -> asyncio.Future[None]:
        """Done when it is stored. A caller that is cancelled meanwhile does not take it back."""
        stored: asyncio.Future[None] = self._loop.create_future()
        self._waiting.append((submission, stored))
        if self._sending is None:
            self._sending = apart(self._send_all())
        return stored  # the insert is a task's of its own: a cancelled caller leaves it alone

    async def drain(self) -> None:
        """Wait until all that was accepted is stored or refused."""
        if self._sending is not None:
            await asyncio.wait([self._sending])

    async def _send_all(self) -> None:
        try:
            while self._waiting:
                await self._send_batch(self._next_batch())
        finally:
            self._sending = None
            for _, stored in self._waiting:
                stored.cancel()
            self._waiting.clear()

    def _next_batch(self) -> list[tuple[Submission, asyncio.Future[None]]]:
        batch = [self._waiting.popleft()]
        size = batch[0][0].job.args_bytes
        while self._waiting and len(batch) < GROUP_ROWS_MAX:
            size += self._waiting[0][0].job.args_bytes
            if size > GROUP_BYTES_MAX:
                break
            batch.append(self._waiting.popleft())
        return batch

    async def _send_batch(self, batch: list[tuple[Submission, asyncio.Future[None]]]) -> None:
        try:
            await self._send([submission for submission, _ in batch])
        except DatabaseError as error:
            if isinstance(error, StorageFull) and len(batch) > 1:
                half = len(batch) // 2  # there may be room for fewer
                await self._send_batch(batch[:half])
                await self._send_batch(batch[half:])
            else:
                _fail(batch, error)  # the database is away, full or in doubt: it would be for each of them
        except Exception as error:
            if len(batch) == 1:
                _fail(batch, error)
                return
            # One of them is bad. The batch was rolled back as a whole, so each may try alone.
            for member in batch:
                await self._send_batch([member])
        except BaseException:
            for _, stored in batch:
                stored.cancel()
            raise
        else:
            for _, stored in batch:
                if not stored.done():
                    stored.set_result(None)


def _fail(batch: Sequence[tuple[Submission, asyncio.Future[None]]], error: Exception) -> None:
    for submission, stored in batch:
        if not stored.done():
            stored.set_exception(_own(error, submission))


def _own(error: Exception, submission: Submission) -> Exception:
    """An error for each caller: a traceback grows with every place that raises it, and strangers' ids are no help."""
    if not isinstance(error, DatabaseError):
        return error
    doubtful = isinstance(error, OutcomeUnknown)
    own = in_doubt([submission.job.id], error.why) if doubtful else copy.copy(error)
    own.__cause__ = error.__cause__
    return own
