"""The steps of one attempt while it runs: recalled once, done, remembered; for plain handlers and async ones."""

from __future__ import annotations

import asyncio
import random
import threading
import time
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from fencerow.core.errors import FencerowError
from fencerow.core.model.backoff import Backoff
from fencerow.core.model.classify import is_retryable
from fencerow.core.model.control import Fail, Retry, Snooze, Suspend
from fencerow.core.model.value import ValueCodec
from fencerow.core.store.notes import hold_fence
from fencerow.core.worker.attempt import Attempt, lease_lost
from fencerow.db.run import Operation
from fencerow.steps import memory
from fencerow.steps.calls import Call, Together
from fencerow.steps.errors import SignalTimeout, StepNotPossible
from fencerow.steps.history import Asked, History
from fencerow.steps.memory import Beside, Fencing, Recalled, Remembering, Waited, Waiting
from fencerow.steps.model import Kind
from fencerow.steps.results import codec_of, packed, unpacked
from fencerow.steps.settings import StepSettings

if TYPE_CHECKING:
    from fencerow.core.worker.context import Job

T = TypeVar("T")
# What a step does in order: each yielded operation is run on the database, each yielded call is made, each yielded
# number is a pause in seconds; what it returns is the step's result.
Script = Generator[Any, Any, T]

DATA = ValueCodec.of(Any)
TIMED_OUT = '{"timed_out":true}'
THROUGH = (FencerowError, Fail, Retry, Snooze)  # raised in a step, they speak of the attempt


class Run:
    """What one attempt has of its steps. Made at the first of them: until then they cost nothing."""

    def __init__(self, job: Job, attempt: Attempt, settings: StepSettings) -> None:
        self._settings = settings
        self._job = job
        self._attempt = attempt
        self._fencing = Fencing(job.id, attempt.holder, job.attempt)
        self._history: History | None = None
        self._now_us = 0
        self._recalling = asyncio.Lock()  # of an async handler, whose first steps may be asked for at once
        self._recalling_plain = threading.Lock()

    # --- recalling ---------------------------------------------------------------------------------

    def history(self, run: Callable[[Operation[Any]], Any]) -> History:
        """The history, recalled once, for a plain handler."""
        with self._recalling_plain:
            if self._history is None:
                self._take(run(memory.recall(self._fencing)))
        assert self._history is not None
        return self._history

    async def ahistory(self, run: Callable[[Operation[Any]], Any]) -> History:
        """The same for an async one."""
        async with self._recalling:
            if self._history is None:
                self._take(await run(memory.recall(self._fencing)))
        assert self._history is not None
        return self._history

    def _take(self, recalled: Recalled | None) -> None:
        if recalled is None:
            raise lease_lost(self._fencing.id, self._fencing.attempt)
        if recalled.ephemeral:
            raise StepNotPossible(
                f"job {self._fencing.id} is ephemeral",
                "it leaves nothing behind, and remembers nothing",
                "declare it without ephemeral=True",
            )
        self._now_us = recalled.now_us
        self._history = History(recalled.steps, self._settings)

    # --- what steps do -----------------------------------------------------------------------------

    def step(
        self,
        history: History,
        name: str,
        function: Callable[..., T],
        args: tuple[Any, ...],
        retries: int,
        backoff: Backoff,
        beside: Beside | None = None,
    ) -> Script[T]:
        """The remembered result of a step, or its function's, which is remembered."""
        codec = codec_of(function)
        asked = history.ask(name, Kind.STEP)
        try:
            if asked.known is not None:
                known = unpacked(self._packing, self._fencing.id, name, asked.known.result)
                return codec.decode(known)  # type: ignore[no-any-return]
            began = time.monotonic()
            value = yield from _tried(Call(function, args), retries, backoff)
            encoded = codec.encode(value)
            result = packed(self._packing, self._fencing.id, name, encoded)
            yield from self._remember(history, asked, result, time.monotonic() - began, beside)
            return codec.decode(encoded)  # type: ignore[no-any-return]
        finally:
            history.left()

    def step_in_transaction(
        self,
        history: History,
        name: str,
        function: Callable[..., T],
        args: tuple[Any, ...],
        beside: Beside | None = None,
    ) -> Script[T]:
        """The remembered result of a step whose effects were committed with it, or its function's, which is now."""
        codec = codec_of(function)
        asked = history.ask(name, Kind.STEP)
        try:
            if asked.known is not None:
                known = unpacked(self._packing, self._fencing.id, name, asked.known.result)
                return codec.decode(known)  # type: ignore[no-any-return]
            began, stored = time.monotonic(), [b"", b""]  # as it was encoded, and as it is stored

            def remembering(value: Any) -> Operation[bool]:
                encoded = codec.encode(value)
                result = packed(self._packing, self._fencing.id, name, encoded)
                history.check_room(name, result)
                stored[:] = encoded, result.encode()
                step = _as_asked(asked, result, time.monotonic() - began)
                return memory.remember(self._fencing, step, beside)

            fence = self._fencing
            hold = hold_fence(fence.id, holder=fence.holder, attempt=fence.attempt)
            yield Together(function, args, hold, remembering)
            history.remembered(stored[1].decode())
            return codec.decode(stored[0])  # type: ignore[no-any-return]
        finally:
            history.left()

    def refuse_lost(self, *, held: bool) -> None:
        """What the fence said to a step in a transaction.

        Raises:
            LeaseLost: the attempt no longer holds the job.
        """
        if not held:
            raise lease_lost(self._fencing.id, self._fencing.attempt)

    def patched(self, history: History, name: str) -> Script[bool]:
        """Whether this execution takes the new branch; the first that comes here says it for all."""
        if not history.knows(name) and history.is_ahead():
            return False
        asked = history.ask(name, Kind.PATCH)
        try:
            if asked.known is None:
                yield from self._remember(history, asked, "true", None)
            return True
        finally:
            history.left()

    def wait(self, history: History, name: str, waiting: dict[str, Any], what: str) -> Script[Any]:
        """What came of a wait, if it is over; else the job is suspended."""
        signal = waiting.get("signal")
        asked = history.ask(name, Kind.SLEEP if signal is None else Kind.SIGNAL)
        try:
            if asked.known is not None:
                return _came(asked.known.result, what)
            over = "null" if signal is None else TIMED_OUT
            wanted = Waiting(name=name, seq=asked.seq, beside=asked.beside, over=over, **waiting)
            waited: Waited | None = yield memory.wait(self._fencing, wanted)
            if waited is None:
                raise lease_lost(self._fencing.id, self._fencing.attempt)
            if waited.result is None:
                raise Suspend(_until(what, waited.until_us))
            history.remembered(waited.result)
            return _came(waited.result, what)
        finally:
            history.left()

    def _remember(
        self,
        history: History,
        asked: Asked,
        result: str,
        took_s: float | None,
        beside: Beside | None = None,
    ) -> Script[None]:
        history.check_room(asked.name, result)
        step = _as_asked(asked, result, took_s)
        self.refuse_lost(held=(yield memory.remember(self._fencing, step, beside)))
        history.remembered(result)

    @property
    def _packing(self) -> Any:
        return self._attempt.handler.packing


def _as_asked(asked: Asked, result: str, took_s: float | None) -> Remembering:
    return Remembering(
        name=asked.name, kind=asked.kind, seq=asked.seq, beside=asked.beside, result=result, took_s=took_s
    )


def _tried(call: Call, retries: int, backoff: Backoff) -> Script[Any]:
    """The value of a call, tried again after errors that may pass."""
    failures = 0
    while True:
        try:
            return (yield call)
        except THROUGH:
            raise
        except Exception as error:
            failures += 1
            if failures > retries or not is_retryable(error):
                raise
            yield backoff.delay_s(failures, random.random)


def _came(result: str, what: str) -> Any:
    """What a wait brought.

    Raises:
        SignalTimeout: its time came first.
    """
    if result == TIMED_OUT:
        raise SignalTimeout(
            f"no signal came: {what}",
            "its timeout_s is over",
            "catch this error where the job can go on without it",
        )
    found = msgspec.json.decode(result)
    return None if found is None else found["data"]


def _until(what: str, until_us: int | None) -> str:
    """What is waited for, and until when, as `fencerow why` writes an instant."""
    from fencerow.command.times import exact  # who does not wait never loads it

    return what if until_us is None else f"{what}, until {exact(until_us)}"
