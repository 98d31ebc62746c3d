"""Several attempts of one job name in one call of its handler, each with an outcome of its own.

The call is an `Attempt` too, one that no database knows: it has the time limit, meets the exceptions and is
given up when it ignores them. What an item is asked reaches the call only if it means all of them.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial
from typing import Any

from fencerow.batches.batch import BatchCall, Item
from fencerow.batches.item import BatchItem, Said
from fencerow.core.errors import InvalidPayload, LeaseLost
from fencerow.core.log_fields import handled
from fencerow.core.model.handler import VALUE
from fencerow.core.model.outcome import Outcome, Released, Stopped, Succeeded
from fencerow.core.model.value import run_whole
from fencerow.core.worker.attempt import Attempt, Interrupt
from fencerow.core.worker.calling import Calls, ran_late
from fencerow.core.worker.deciding import Decider, Decision, timeout_error
from fencerow.core.worker.executor import Executor
from fencerow.db.service import soon
from fencerow.db.text import amount

log = logging.getLogger("fencerow.worker")

Arguments = tuple[tuple[Any, ...], dict[str, Any]]


class Batches:
    """Runs the attempts of batch handlers, each batch in one call."""

    def __init__(self, executor: Executor, calls: Calls, decider: Decider) -> None:
        self._executor = executor
        self._report = executor.report
        self._calls = calls
        self._decider = decider

    async def run(self, attempts: Sequence[Attempt], slot_lost: Callable[[], None]) -> bool:
        """Run attempts of one name in one call. Returns whether the slot is still the caller's.

        It is not when the handler had to be given up; `slot_lost` was called then.
        """
        first = attempts[0]
        batch = BatchCall(Attempt(first.claimed, first.holder, first.handler))
        for attempt, given in zip(attempts, await self._started(attempts), strict=True):
            if given is not None:
                job = self._calls.job(attempt)
                encode = partial(attempt.handler.stored_result, attempt.claimed.id, inside=True)
                batch.add(BatchItem(given[1][VALUE], job, encode, partial(self._on_said, batch)), attempt)
        self._refuse_late(batch)
        if not batch.open:
            return True
        try:
            error = await self._call(batch, slot_lost)
            await self._settle_rest(batch, error)
        except Exception as fault:
            for item, attempt in list(batch.open.items()):
                batch.take(item)
                self._report(attempt, self._decider.decide_fault(attempt, fault))
        if batch.call.abandoned:
            self._executor.uncount_hung()
        return not batch.call.abandoned

    async def _started(self, attempts: Sequence[Attempt]) -> list[Arguments | None]:
        """The arguments of each, as `start` gives them. Those that may have to wait for a store wait together."""
        if not attempts[0].handler.packing.waits:
            return [await self._executor.start(each) for each in attempts]
        return await asyncio.gather(*map(self._executor.start, attempts))

    def _refuse_late(self, batch: BatchCall) -> None:
        """A good deal may have happened while the values came."""
        for item, attempt in list(batch.open.items()):
            try:
                outcome = self._executor.refused_start(attempt)
                if outcome is None:
                    continue
            except LeaseLost:
                outcome = None
            batch.take(item)
            batch.items.remove(item)
            self._report(attempt, outcome)

    # --- the call ----------------------------------------------------------------------------------

    async def _call(self, batch: BatchCall, slot_lost: Callable[[], None]) -> BaseException | None:
        """Call the handler inside its middleware; returns what was raised."""
        call, items = batch.call, tuple(batch.items)
        run: Callable[[], Awaitable[Any]] = partial(call.handler.function, items)
        leave: Callable[[], None] = partial(self._give_up_call, batch, slot_lost)
        raise_in: Callable[[Interrupt], None] | None = None
        if not call.handler.is_async:
            run, leave, raise_in = self._calls.threaded(call, run, leave)
        for middleware in reversed(self._calls.middleware.batch):
            run = partial(middleware, items, run)
        for item, attempt in batch.open.items():
            ignored = partial(self._give_up_item, batch, item)
            attempt.begin(batch.asked, ignored, kill_s=self._calls.kill_s)
        beside = tuple(batch.open.values())
        _, error = await self._calls.interruptible(call, _in_batch(batch, run), leave, raise_in, beside)
        ran_late(call)  # then each item that is open ran out of time; what it said of the others stands
        batch.over()
        return error

    def _on_said(self, batch: BatchCall, item: Item) -> None:
        """Something was said of an item, on any thread."""
        soon(self._calls.loop, self._settle_said, batch, item)

    def _settle_said(self, batch: BatchCall, item: Item) -> None:
        # Only the database knows whether a lost lease is true; it is asked when the handler is over.
        if item in batch.open and not isinstance(item.said, LeaseLost):
            self._settle(batch, item, None)

    # --- outcomes ----------------------------------------------------------------------------------

    async def _settle_rest(self, batch: BatchCall, error: BaseException | None) -> None:
        """The handler is over: settle what is open still."""
        for item, attempt in list(batch.open.items()):
            if item not in batch.open:
                continue  # settled by what was said of it, while another one was looked up
            said = item.close()
            met = said if isinstance(said, BaseException) else error if said is None else None
            if isinstance(met, LeaseLost) and attempt.interrupt is None:
                outcome = await self._decider.look_up(
                    attempt, partial(self._decider.decide, attempt, met, still_ours=True)
                )
                batch.take(item)
                self._report(attempt, outcome)
            else:
                self._settle(batch, item, error)

    def _settle(self, batch: BatchCall, item: Item, error: BaseException | None) -> None:
        attempt = batch.open[item]
        decision = self._ended(attempt, batch.take(item), error)
        self._report(attempt, item.followed(decision) if isinstance(decision, Succeeded) else decision)

    def _ended(self, attempt: Attempt, said: Said | None, error: BaseException | None) -> Decision:
        """What an item becomes: by what was asked of it, by what was said of it, by how the handler ended."""
        if attempt.interrupt is Interrupt.LOST:
            return None
        if isinstance(said, bytes):
            return Succeeded(said)
        if attempt.interrupt is Interrupt.CANCEL:
            return Stopped("the batch ended without its success")
        if said is not None:
            return self._decider.decide(attempt, said)
        if attempt.interrupt is Interrupt.SHUTDOWN:
            return Released("the worker shut down")
        if attempt.interrupt is Interrupt.TIMEOUT:
            late = timeout_error(attempt)
            return self._decider.decide(attempt, late.with_traceback(error.__traceback__ if error else None))
        if error is not None:
            return self._decider.decide(attempt, error)
        return self._silent(attempt)

    def _silent(self, attempt: Attempt) -> Outcome | None:
        try:
            return Succeeded(attempt.handler.stored_result(attempt.claimed.id, None))
        except InvalidPayload:
            error = InvalidPayload(
                "the batch handler returned without an outcome for this item",
                "None is no result of the declared type",
                "call item.succeed(...), or declare BatchItem[..., None]",
            )
            return self._decider.decide(attempt, error)

    def _give_up_item(self, batch: BatchCall, item: Item) -> None:
        """A cancel has waited for long enough; the others of the batch go on."""
        attempt = batch.open[item]
        if attempt.interrupt is not Interrupt.CANCEL:
            batch.call.give_up_now()
            return
        log.warning("%s was cancelled; its batch did not heed that and goes on without it", attempt)
        self._settle(batch, item, None)
        if not batch.open:
            batch.call.end(Interrupt.CANCEL)

    def _give_up_call(self, batch: BatchCall, slot_lost: Callable[[], None]) -> None:
        """Go on without a handler that ignores its end. What it still does, the fences refuse."""
        call = batch.call
        self._executor.count_hung()
        log.error(
            "a batch of %s (%s) did not end when asked (%s) and was given up; it may still be running here: %s",
            amount(len(batch.items), "job"),
            call.claimed.name,
            call.interrupt,
            _ids(batch.open.values()),
        )
        batch.tell_all()
        for item in list(batch.open):
            self._settle(batch, item, None)
        slot_lost()


def _ids(attempts: Iterable[Attempt]) -> str:
    return ", ".join(attempt.claimed.id for attempt in attempts) or "all had ended"


async def _in_batch(batch: BatchCall, run: Callable[[], Awaitable[Any]]) -> Any:
    """In here lines of the log know the batch that they are written in."""
    handled.set(batch.log_fields)
    return run_whole(await run())
