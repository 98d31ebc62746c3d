"""The child's side: waits for attempts, runs each as the worker itself would, and tells what became of it."""

from __future__ import annotations

import asyncio
import io
import logging
import os
import signal
import socket
import sys
import threading
from dataclasses import replace
from typing import Any, NoReturn

import msgspec

from fencerow.core.composed import config_type
from fencerow.core.errors import InvalidInput, NotImportable
from fencerow.core.model.classify import leaves
from fencerow.core.model.handler import Handler
from fencerow.core.model.job import Claimed
from fencerow.core.model.submission import PreparedCall, Submission
from fencerow.core.store.connect import open_engine
from fencerow.core.telemetry import Telemetry
from fencerow.core.worker.attempt import Attempt, Interrupt
from fencerow.core.worker.brought import brought
from fencerow.core.worker.calling import Calls
from fencerow.core.worker.deciding import Decider, Decision
from fencerow.core.worker.executor import Executor
from fencerow.core.worker.follow_ups import AsStored
from fencerow.core.worker.lines import JobLines
from fencerow.db.engine import Engine
from fencerow.db.main_loop import run_main
from fencerow.db.memory import resident_bytes
from fencerow.processes.forwarding import Forwarding, forward_all
from fencerow.processes.origin import DeclaredInModule, load
from fencerow.processes.wire import (
    LENGTH,
    ChildAsked,
    ChildLeave,
    EndAttempt,
    Missing,
    OutOfMemory,
    Ready,
    RunAttempt,
    Start,
    ToChild,
    answer,
    framed,
)

POOL_MAX = 2  # connections of a child's own: the transaction of its job, and what the job says meanwhile
NEVER_S = 1e9  # it is the worker that ends a handler which ignores its end
OUT_OF_MEMORY = framed(OutOfMemory())  # made in time: later there may be no room for it

_decoder = msgspec.json.Decoder(ToChild)


def serve(connection: socket.socket, start: dict[str, Any]) -> None:
    """Serve the worker at the other end until it says that it is enough.

    A service manager may tell all processes to end: here the worker decides when. Handlers of signals, unlike signals
    that are ignored, do not pass on to the programs that a job starts.
    """
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _nothing)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(
                line_buffering=True
            )  # what is printed shall be seen, also if this process is killed
    run_main(ChildService(connection, msgspec.convert(start, Start)).run())


class ChildService:
    """Runs one attempt at a time. What it hears comes from a thread, so that a blocked loop does not hide the end."""

    def __init__(self, connection: socket.socket, start: Start) -> None:
        self._connection = connection
        self._sending = threading.Lock()
        self._start = start
        self._config = replace(config_type()(**start.config), pool_max=POOL_MAX)
        self._engine: Engine = open_engine(self._config)
        self._telemetry = Telemetry()
        self._forwarding = Forwarding(self.send)
        self._lines = JobLines.of(self._config, f" in child process {os.getpid()}")
        self._attempt: ChildAttempt | None = None
        self._asked: Interrupt | None = None  # to end, before there was an attempt to tell
        self._running: asyncio.Task[None] | None = None
        self._left = asyncio.Event()

    async def run(self) -> None:
        forward_all(self._forwarding, self._start.levels)
        loop = asyncio.get_running_loop()
        threading.Thread(target=self._listen, args=(loop,), name="fencerow-worker", daemon=True).start()
        self.send(Ready(os.getpid()))
        await self._left.wait()
        await self._engine.aclose()

    def send(self, message: msgspec.Struct) -> None:
        """Tell the worker; from any thread."""
        self._send_raw(framed(message))

    def out_of_memory(self) -> NoReturn:
        """Tell it with what was set aside for this, and end: nothing in here can be relied upon any more."""
        try:
            self._send_raw(OUT_OF_MEMORY)
        finally:
            os._exit(1)

    def _send_raw(self, frame: bytes) -> None:
        with self._sending:
            self._connection.sendall(frame)

    # --- in the thread that listens --------------------------------------------------------------------

    def _listen(self, loop: asyncio.AbstractEventLoop) -> None:
        try:
            while True:
                (size,) = LENGTH.unpack(self._received(LENGTH.size))
                loop.call_soon_threadsafe(self._heard, _decoder.decode(self._received(size)))
        except OSError:
            # The worker is gone, and so must everything be that was started for it.
            os.killpg(os.getpgrp(), signal.SIGKILL)

    def _received(self, size: int) -> bytes:
        found = bytearray()
        while len(found) < size:
            part = self._connection.recv(size - len(found))
            if not part:
                raise ConnectionResetError
            found += part
        return bytes(found)

    # --- on the event loop -------------------------------------------------------------------------------

    def _heard(self, message: ToChild) -> None:
        match message:
            case RunAttempt():
                self._asked = None  # it was meant for the attempt before, which had just ended
                self._running = asyncio.create_task(self._run(message))
                self._running.add_done_callback(_end_if_broken)
            case EndAttempt(why):
                if self._attempt is not None:
                    self._attempt.asked(why)
                else:
                    self._asked = why
            case ChildLeave():
                self._left.set()

    async def _run(self, message: RunAttempt) -> None:
        try:
            declared = load(message.origin)
        except NotImportable as error:
            self.send(Missing(error.what, error.why, error.fix))
            return
        forward_all(self._forwarding, self._start.levels)
        claimed = msgspec.structs.replace(message.claimed, args=msgspec.Raw(message.args.encode()))
        attempt = self._attempt = ChildAttempt(claimed, message.holder, declared.handler, self)
        if self._asked is not None:
            attempt.asked(self._asked)
        decision = await self._decision(declared, attempt)
        self._attempt = None
        self.send(answer(decision, kept_bytes()))

    async def _decision(self, declared: DeclaredInModule, attempt: Attempt) -> Decision:
        said: list[Decision] = []
        engine, telemetry = self._engine, self._telemetry
        decider = Decider(
            engine,
            telemetry,
            unknown_max_s=self._config.unknown_max_s,
            held_max_s=self._start.held_max_s,
            meet=self._guard_memory,
        )
        middleware = replace(declared.middleware, as_stored=_told(declared.middleware.as_stored))
        calls = Calls(engine, decider, telemetry, middleware, kill_s=NEVER_S, config=self._config)
        lease = ParentLease(attempt.holder)

        def report(_attempt: Attempt, decision: Decision) -> None:
            said.append(decision)

        together = brought().together
        executor = Executor(engine, lease, report, telemetry, calls, decider, together, self._lines)
        try:
            await executor.run([attempt], _no_slot)
        finally:
            calls.close()
        return said[0]

    def _guard_memory(self, error: BaseException) -> None:
        """End here if the memory limit was met: that is no failure of the attempt, but a crash."""
        limited = self._start.memory_bytes_max is not None
        if limited and any(isinstance(each, MemoryError) for each in leaves(error)):
            self.out_of_memory()


class ChildAttempt(Attempt):
    """An attempt that tells the worker when it ends by itself, so that the worker's patience begins."""

    def __init__(self, claimed: Claimed, holder: str, handler: Handler, service: ChildService) -> None:
        super().__init__(claimed, holder, handler)
        self._service = service

    def asked(self, why: Interrupt) -> None:
        """The worker asks it to end."""
        super().end(why)

    def end(self, why: Interrupt, raise_s: float = 0.0) -> None:
        first = self.interrupt is None
        super().end(why, raise_s)
        if first:
            self._service.send(ChildAsked(why))


class ParentLease:
    """The worker's lease, which it watches itself: it says when the attempt must end."""

    def __init__(self, holder: str) -> None:
        self.holder: str | None = holder

    def holds(self) -> bool:
        return True


def kept_bytes() -> int:
    """What this process keeps in memory now; its most so far where the system does not tell."""
    now = resident_bytes()
    if now is not None:
        return now
    import resource

    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024


def _end_if_broken(running: asyncio.Task[None]) -> None:
    """A child that cannot answer must not look as if it still worked."""
    if running.cancelled() or running.exception() is not None:
        logging.getLogger("fencerow.worker").critical(
            "a child process is broken", exc_info=running.exception()
        )
        os._exit(1)


def _nothing(_number: int, _frame: object) -> None:
    """The worker hears it too."""


def _told(as_stored: AsStored | None) -> AsStored | None:
    """Follow-ups travel to the worker, which cannot pack them again for the job of another id.

    Raises, when it is called:
        InvalidInput: it would have to.
    """
    if as_stored is None:
        return None

    def checked(call: PreparedCall) -> Submission:
        found = as_stored(call)
        if found.pack is not None:
            raise InvalidInput(
                "a follow-up from a child process is unique and its arguments are sealed",
                "the worker that stores it cannot seal them again, for the job that it may replace",
                "submit it in the handler, or run this job in the worker itself",
            )
        return found

    return checked


def _no_slot() -> None:
    """There is none to be lost: the worker kills this process."""
