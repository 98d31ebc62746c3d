"""The death of a worker by an error of its own: the first reason stands, and somebody always learns of it."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from fencerow.core.worker.loop import Loop

log = logging.getLogger("fencerow.worker")


class WorkerDied(RuntimeError):
    """A loop of the worker ended by an error; the cause is attached. Let the process end and be restarted."""


class Death:
    """Whether the worker died, of what, and whose `with` block has to be told. Used on the event loop only."""

    def __init__(self, worker: str, loop: asyncio.AbstractEventLoop) -> None:
        self.future: asyncio.Future[BaseException] = loop.create_future()
        self._worker = worker
        self._owner: asyncio.Task[Any] | None = None
        self._owner_told = False
        self._expected = False
        self._sudden = False

    def happened(self) -> bool:
        return self.future.done()

    def is_sudden(self) -> bool:
        """Whether half of the worker is gone, so that nothing is to be waited for."""
        return self._sudden

    def own(self, owner: asyncio.Task[Any] | None) -> None:
        """This task is inside a `with` block of the worker; it is cancelled when the worker dies."""
        self._owner = owner

    def disown(self, error: BaseException | None) -> bool:
        """The `with` block ended by this error; returns whether it was our cancel, which is taken back."""
        owner, self._owner = self._owner, None
        return (
            self._owner_told
            and owner is not None
            and owner.uncancel() == 0
            and isinstance(error, asyncio.CancelledError)
        )

    def expect(self) -> None:
        """The worker stops: nobody's block is cancelled any more."""
        self._expected = True

    async def guard(self, loop: Loop) -> None:
        """Run a loop until it is stopped; the worker dies of its error."""
        try:
            await loop.run()
        except asyncio.CancelledError:
            raise
        except BaseException as error:
            self.tell(error, loop.name)

    def tell(self, error: BaseException | None, where: str = "a slot", *, sudden: bool = True) -> None:
        """Something of the worker ended by this error. If it is not sudden, what runs may end first."""
        if error is None or self.future.done():
            return
        log.critical("%s of worker %s ended by an error", where, self._worker, exc_info=error)
        self.future.set_result(error)
        self._sudden = sudden
        if self._owner is not None and not self._expected:
            # Nobody waits for `future` in a `with` block: half a worker must not look alive.
            self._owner_told = self._owner.cancel(f"worker {self._worker} died")

    def rule_out(self) -> None:
        """The worker has ended without dying."""
        if not self.future.done():
            self.future.cancel()

    def raise_reason(self) -> None:
        """Raise WorkerDied if the worker died."""
        if self.future.done() and not self.future.cancelled():
            error = self.future.result()
            raise WorkerDied(f"worker {self._worker} died: {type(error).__name__}: {error}") from error
