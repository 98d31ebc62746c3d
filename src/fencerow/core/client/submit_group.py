"""Plain submits of one event loop in one insert: those that arrive while one is under way go with the next.

The first goes at once; nobody waits for a timer. Where the last one was alone, so that nobody else is about to come, it
goes before its caller waits, without a task.
"""

from __future__ import annotations

import asyncio
import copy
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Sequence
from weakref import WeakKeyDictionary, ref

from fencerow.core.errors import DatabaseError, OutcomeUnknown, StorageFull
from fencerow.core.model.submission import Submission
from fencerow.db.apart import apart
from fencerow.db.begun import Over

IDS_SHOWN = 3
GROUP_ROWS_MAX = 500
GROUP_BYTES_MAX = 4 * 1024 * 1024
INTERRUPTS = (KeyboardInterrupt, SystemExit)


def in_doubt(ids: Sequence[str], why: str) -> OutcomeUnknown:
    """The error for callers of a submit that may have been stored or not; `ids` are theirs and nobody else's."""
    shown = ", ".join(ids[:IDS_SHOWN]) + (f" and {len(ids) - IDS_SHOWN} more" if len(ids) > IDS_SHOWN else "")
    return OutcomeUnknown(
        f"it is unknown whether the submit of {shown} was stored",
        why,
        "submit again under the same id or key, or look the id up",
        job_ids=tuple(ids),
    )


Member = tuple[Submission, asyncio.Future[None]]
Send = Callable[[Sequence[Submission]], Awaitable[object]]
Begin = Callable[[Sequence[Submission], Over], bool]


class SubmitGroups:
    """One group for each event loop. `beginning` is asked once for each of them."""

    def __init__(self, send: Send, beginning: Callable[[], Begin | None]) -> None:
        self._send = send
        self._beginning = beginning
        self._of_loops: WeakKeyDictionary[asyncio.AbstractEventLoop, SubmitGroup] = WeakKeyDictionary()
        self._latest: SubmitGroup | None = None  # mostly there is but one

    def submit(self, submission: Submission) -> asyncio.Future[None]:
        """Store it with what this event loop submits meanwhile: see `SubmitGroup.submit`."""
        loop = asyncio.get_running_loop()
        group = self._latest
        if group is None or group.loop() is not loop:
            group = self._of_loops.get(loop)
            if group is None:
                group = self._of_loops[loop] = SubmitGroup(self._send, loop, self._beginning())
            self._latest = group
        return group.submit(submission, loop.create_future())

    async def drain(self) -> None:
        """Wait until all that this event loop submits is stored or refused."""
        group = self._of_loops.get(asyncio.get_running_loop())
        if group is not None:
            await group.drain()


class SubmitGroup:
    """Plain submissions of one event loop. `send` stores a batch, all or none."""

    def __init__(
        self,
        send: Send,
        loop: asyncio.AbstractEventLoop,
        begin: Begin | None = None,
    ) -> None:
        """`begin` sends one at once, if it can: see `Begins`."""
        self._send = send
        self._begin = begin
        self.loop = ref(loop)
        self._waiting: deque[Member] = deque()
        self._sending: asyncio.Task[None] | None = None
        self._alone: Member | None = None  # it was sent at once, and is not answered yet
        self._was_alone = False
        self._drained: asyncio.Future[None] | None = None  # somebody waits until that one is answered

    def submit(self, submission: Submission, stored: asyncio.Future[None]) -> asyncio.Future[None]:
        """Returns `stored`, a future of the event loop, which is done when it is stored. A caller that is cancelled
        meanwhile does not take it back."""
        member = (submission, stored)
        if self._sending is not None or self._alone is not None:
            self._waiting.append(member)
        elif not self._goes_at_once(member):
            self._waiting.append(member)
            self._sending = apart(self._send_all())
        return stored  # the insert is a task's of its own: a cancelled caller leaves it alone

    async def drain(self) -> None:
        """Wait until all that was accepted is stored or refused."""
        if self._alone is not None:  # not its caller's future: a caller may be cancelled
            answered = self._drained = self._drained or asyncio.get_running_loop().create_future()
            await asyncio.wait([answered])
        if self._sending is not None:
            await asyncio.wait([self._sending])

    def _goes_at_once(self, member: Member) -> bool:
        """Whether it is under way now."""
        if self._begin is None or not self._was_alone or not self._begin([member[0]], self._answered):
            return False
        self._alone = member
        return True

    def _answered(self, _: object, error: BaseException | None) -> None:
        """The one that was sent at once is stored, or is not."""
        member, self._alone = self._alone, None
        assert member is not None, "one was sent"
        if error is not None:
            _tell([member], error)
        elif not member[1].done():
            member[1].set_result(None)
        drained, self._drained = self._drained, None
        if drained is not None:
            drained.set_result(None)
        if self._waiting and self._sending is None:
            self._sending = apart(self._send_all())
        if isinstance(error, INTERRUPTS):
            raise error  # it came while the answer was read, and is the event loop's

    async def _send_all(self) -> None:
        try:
            while self._waiting:
                batch = self._next_batch()
                self._was_alone = len(batch) == 1
                await self._send_batch(batch)
        except INTERRUPTS:
            self._sending = apart(self._send_all()) if self._waiting else None  # should the event loop go on
            raise
        except BaseException as error:
            self._sending = None
            _tell(self._waiting, error)
            self._waiting.clear()
            raise
        self._sending = None

    def _next_batch(self) -> list[Member]:
        few = len(self._waiting) <= GROUP_ROWS_MAX
        if few and sum([each.job.args_bytes for each, _ in self._waiting]) <= GROUP_BYTES_MAX:
            everybody = list(self._waiting)  # nearly always
            self._waiting.clear()
            return everybody
        batch = [self._waiting.popleft()]
        size = batch[0][0].job.args_bytes
        while self._waiting and len(batch) < GROUP_ROWS_MAX:
            size += self._waiting[0][0].job.args_bytes
            if size > GROUP_BYTES_MAX:
                break
            batch.append(self._waiting.popleft())
        return batch

    async def _send_batch(self, batch: list[Member]) -> None:
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
        except BaseException as error:
            _tell(batch, error)
            raise
        else:
            _tell(batch, None)


def _tell(batch: Iterable[Member], error: BaseException | None) -> None:
    """How it ended. An interrupt of the program is no cancel of its callers: nobody knows what came of theirs."""
    if isinstance(error, INTERRUPTS):
        error = in_doubt([], f"the program was interrupted ({type(error).__name__})")
    if isinstance(error, Exception):
        _fail(batch, error)
        return
    for _, stored in batch:
        if not stored.done():
            stored.set_result(None) if error is None else stored.cancel()


def _fail(batch: Iterable[Member], error: Exception) -> None:
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
