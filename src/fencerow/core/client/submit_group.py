"""Plain submits of one event loop in one insert: those that arrive while one is under way go with the next.

The first goes in the next turn of the event loop, with those of this one; nobody waits for a timer. Where the last one
was alone, so that nobody else is about to come, it goes before its caller waits. Where the engine can, it is sent at
once, without a task: the answer tells its callers, and sends the next.
"""

from __future__ import annotations

import asyncio
import copy
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary, ref

from fencerow.core.errors import DatabaseError, OutcomeUnknown, RowRefused, StorageFull
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
        """`begin` sends a batch at once, without a task, if it can: see `Begins`."""
        self._send = send
        self._begin = begin
        self.loop = ref(loop)
        self._waiting: deque[Member] = deque()
        self._is_called = False  # a batch goes when the others of this turn have come
        self._under_way: list[Member] | None = None  # a batch, until it is stored or refused
        self._was_alone = False
        self._sending: asyncio.Task[None] | None = None  # stores the batch that could not be sent at once
        self._gone = 0  # how many of those that were accepted went, or never will
        self._through: asyncio.Future[int] | None = None  # somebody waits until the batch under way is over

    def submit(self, submission: Submission, stored: asyncio.Future[None]) -> asyncio.Future[None]:
        """Returns `stored`, a future of the event loop, which is done when it is stored. A caller that is cancelled
        meanwhile does not take it back."""
        is_free = self._under_way is None and not self._is_called
        if is_free and self._was_alone and self._begin is not None:
            self._go([(submission, stored)])  # nobody else is about to come
            return stored
        self._waiting.append((submission, stored))
        if is_free:
            stored.get_loop().call_soon(self._go, [])
            self._is_called = True  # behind the call: one more does no harm
        return stored  # nobody sends it who could be cancelled with its caller

    async def drain(self) -> None:
        """Wait until all that was accepted so far is stored or refused."""
        accepted, gone = self._gone + len(self._waiting), 0
        # Those who come meanwhile may never end.
        while (self._is_called or self._under_way is not None) and gone < accepted:
            through = self._through
            if through is None or through.done():
                # Not a caller's future: a caller may be cancelled.
                through = self._through = asyncio.get_running_loop().create_future()
            await asyncio.wait([through])
            gone = through.result()

    # An interrupt of the program may come between any two lines below. Each step that nobody would make again leaves it
    # to a turn of its own (`_interrupted`): nobody stays untold, and the next batch goes if the event loop goes on.

    def _go(self, batch: list[Member]) -> None:
        """Send the batch. One that is empty is made of those who wait, as many as it may have."""
        try:
            self._is_called = False
            if self._under_way is not None or not (batch or self._waiting):
                return
            self._under_way = batch
            if not batch:
                self._fill(batch)
            self._gone += len(batch)
            self._was_alone = len(batch) == 1
            over = partial(self._answered, batch)
            if self._begin is None or not self._begin([each for each, _ in batch], over):
                self._beside(batch, partial(self._send_batch, batch))
        except Exception as error:  # told in a turn of its own, as each batch that waits may meet it
            asyncio.get_running_loop().call_soon(self._answered, batch, None, error)
        except BaseException as interrupt:
            asyncio.get_running_loop().call_soon(self._interrupted, batch, interrupt)

    def _go_on(self) -> None:
        """What was under way is over."""
        through = self._through
        if through is not None and not through.done():
            through.set_result(self._gone)
        self._through = self._under_way = self._sending = None
        if self._waiting:
            self._go([])

    def _answered(self, batch: list[Member], _: object, error: BaseException | None) -> None:
        """The batch that was sent at once is stored, or is not. Told of an interrupt before, it changes nothing."""
        try:
            if isinstance(error, Exception) and len(batch) > 1 and self._under_way is batch:
                self._beside(batch, partial(self._refused, batch, error))
            else:
                _tell(batch, error)
                if self._under_way is batch:
                    self._go_on()
        except BaseException as interrupt:
            asyncio.get_running_loop().call_soon(self._interrupted, batch, interrupt)
        if isinstance(error, INTERRUPTS):
            raise error  # it came while the answer was read, and is the event loop's

    def _beside(self, batch: list[Member], storing: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Store a batch in a task."""
        self._sending = apart(storing())
        # Behind it, not in it: it may be cancelled before its first step.
        self._sending.add_done_callback(partial(self._ended, batch))

    def _ended(self, batch: list[Member], sending: asyncio.Task[None]) -> None:
        """The task is over. What ended it is told to whom it had not told yet."""
        try:
            error = asyncio.CancelledError() if sending.cancelled() else sending.exception()
            if error is not None:
                _tell(batch, error)
                if not isinstance(error, INTERRUPTS):  # else those who wait go, should the event loop go on
                    _tell(self._waiting, error)
                    self._gone += len(self._waiting)
                    self._waiting.clear()
            if self._under_way is batch:
                self._go_on()
        except BaseException as interrupt:
            asyncio.get_running_loop().call_soon(self._interrupted, batch, interrupt)

    def _interrupted(self, batch: list[Member], interrupt: BaseException) -> None:
        """An interrupt came between two lines of a step, wherever that was: end the batch, and go on."""
        _tell(batch, interrupt)
        self._is_called = False
        if self._under_way is None or self._under_way is batch:
            self._go_on()
        raise interrupt

    def _fill(self, batch: list[Member]) -> None:
        """Move those who wait to the batch. Added first: one that an interrupt leaves in both is told, and goes too."""
        few = len(self._waiting) <= GROUP_ROWS_MAX
        if few and sum([each.job.args_bytes for each, _ in self._waiting]) <= GROUP_BYTES_MAX:
            batch += self._waiting  # nearly always
            self._waiting.clear()
            return
        size = 0
        while self._waiting and len(batch) < GROUP_ROWS_MAX:
            size += self._waiting[0][0].job.args_bytes
            if batch and size > GROUP_BYTES_MAX:
                break
            batch.append(self._waiting[0])
            self._waiting.popleft()

    async def _send_batch(self, batch: list[Member]) -> None:
        try:
            await self._send([submission for submission, _ in batch])
        except BaseException as error:
            await self._refused(batch, error)
        else:
            _tell(batch, None)

    async def _refused(self, batch: list[Member], error: BaseException) -> None:
        """It was rolled back as a whole: send those again that may be stored without the others."""
        if isinstance(error, StorageFull) and len(batch) > 1:
            half = len(batch) // 2  # there may be room for fewer
            await self._send_batch(batch[:half])
            await self._send_batch(batch[half:])
        elif len(batch) == 1 or not isinstance(error, Exception) or _is_of_all(error):
            _tell(batch, error)
            if not isinstance(error, Exception):
                raise error
        else:
            for member in batch:  # one of them is bad
                await self._send_batch([member])


def _is_of_all(error: Exception) -> bool:
    """Whether the database is away, in doubt or permits it to nobody of us, as it would each alone."""
    return isinstance(error, DatabaseError) and not isinstance(error, RowRefused)


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
