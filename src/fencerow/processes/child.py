"""One child process, as its worker sees it."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import struct
import threading
from collections.abc import Callable
from typing import Any

import msgspec

from fencerow.core.worker.attempt import Interrupt
from fencerow.db.service import soon
from fencerow.processes.starting import Started
from fencerow.processes.wire import (
    LENGTH,
    ChildAsked,
    ChildLeave,
    ChildReply,
    EndAttempt,
    Missing,
    OutOfMemory,
    Ready,
    RunAttempt,
    Start,
    ToWorker,
    WireLine,
    framed,
)

LAST_WORDS_S = 1.0
WARDEN_S = 7.0  # longer than it tries itself
CODE = struct.Struct("!i")
Said = ChildReply | Missing | OutOfMemory

_decoder = msgspec.json.Decoder(ToWorker)


class Child:
    """A process that runs one attempt at a time. Used on the event loop only; a thread waits for its death.

    Its warden kills what it has started when it ends, however it ends, and is over when nothing is left.
    """

    def __init__(self, started: Started, memory_bytes_max: int | None) -> None:
        self.pid = started.warden.pid
        self.memory_bytes_max = memory_bytes_max
        self.jobs = 0  # that it has been given
        self.resident_bytes = 0  # that it kept after the last one
        loop = asyncio.get_running_loop()
        self.started: asyncio.Future[bool] = loop.create_future()  # false: it died before
        self.gone: asyncio.Future[int] = loop.create_future()  # its exit code, when nothing is left of it
        self._dead: asyncio.Future[None] = loop.create_future()
        self._group: int | None = None  # the child's own number, which it tells
        self._warden = started.warden
        self._control = started.control
        self._lock = threading.Lock()
        self._over = self._doomed = False
        self._said: asyncio.Future[Said] | None = None
        self._on_asked: Callable[[Interrupt], None] = _nobody
        self._writer: asyncio.StreamWriter | None = None
        self._listening: asyncio.Task[None] | None = None
        self._burial: asyncio.Task[None] | None = None
        self._last_resort: asyncio.TimerHandle | None = None
        threading.Thread(
            target=self._wait, args=(loop,), name=f"fencerow-child-{self.pid}", daemon=True
        ).start()

    async def connect(self, connection: socket.socket, start: Start) -> None:
        """Tell it what it shall become. `started` is set when it is that."""
        reader, self._writer = await asyncio.open_unix_connection(sock=connection)
        self._listening = asyncio.create_task(self._listen(reader), name="fencerow-child")
        self._send(start)

    async def run(self, attempt: RunAttempt, on_asked: Callable[[Interrupt], None]) -> Said | None:
        """Run an attempt; returns what the child said, or None if it died without a word."""
        said: asyncio.Future[Said] = asyncio.get_running_loop().create_future()
        self.jobs += 1
        self._said, self._on_asked = said, on_asked
        self._send(attempt)
        waits: set[asyncio.Future[Any]] = {said, self.gone}
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._on_asked = _nobody
        if not said.done():
            return None
        answer = said.result()
        if isinstance(answer, ChildReply):
            self.resident_bytes = answer.resident_bytes
        return answer

    def end(self, why: Interrupt) -> None:
        """Ask the attempt to end, by an exception."""
        self._send(EndAttempt(why))

    def kill(self) -> None:
        """End it now, with all it has started."""
        with self._lock:
            if self._over or self._doomed:
                return
            self._doomed = True
            try:
                self._control.send(b"!")
            except OSError:
                pass  # it is ending already
        self._last_resort = asyncio.get_running_loop().call_later(WARDEN_S, self._kill_warden)

    async def leave(self, within_s: float) -> None:
        """Let it go in its own way, but not for long."""
        self._send(ChildLeave())
        await asyncio.wait({self.gone}, timeout=within_s)
        self.kill()
        await asyncio.shield(self.gone)

    def last_words(self) -> str:
        """How it ended, in words."""
        code = self.gone.result()
        if code >= 0:
            return f"its child process exited with code {code}"
        try:
            name = signal.Signals(-code).name
        except ValueError:
            name = "unknown"
        return f"its child process was killed by signal {-code} ({name})"

    def _send(self, message: msgspec.Struct) -> None:
        if self._writer is not None and not self._writer.is_closing():
            self._writer.write(framed(message))

    async def _listen(self, reader: asyncio.StreamReader) -> None:
        try:
            while True:
                (size,) = LENGTH.unpack(await reader.readexactly(LENGTH.size))
                self._heard(_decoder.decode(await reader.readexactly(size)))
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        except msgspec.MsgspecError:
            logging.getLogger("fencerow.worker").error("child %d does not speak our language", self.pid)
        # Without its connection it can do nothing for us. If it dies just now, its own exit code tells more.
        await asyncio.wait({self._dead}, timeout=LAST_WORDS_S)
        self.kill()

    def _heard(self, message: ToWorker) -> None:
        match message:
            case Ready(pid):
                self._group = pid
                if not self.started.done():
                    self.started.set_result(True)
            case WireLine():
                _log(message)
            case ChildAsked(why):
                self._on_asked(why)
            case _:
                if self._said is not None and not self._said.done():
                    self._said.set_result(message)

    def _kill_warden(self) -> None:
        """It was told, and does not end: somebody has stopped it."""
        with self._lock:
            if not self._over:
                self._warden.kill()

    def _wait(self, loop: asyncio.AbstractEventLoop) -> None:
        """Wait until nothing is left of it."""
        if hasattr(os, "waitid"):
            os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT)
        else:
            self._warden.wait()
        with self._lock:  # its number may be another's from now on
            code = self._warden.wait()
            self._over = True
        said = self._said_code()
        if said is None and self._group is not None:
            kill_group(self._group)  # the warden was killed and could not do it
        code = code if said is None else said
        soon(loop, self._died, code)

    def _said_code(self) -> int | None:
        """How the child ended, if its warden came to tell."""
        try:
            (code,) = CODE.unpack(self._control.recv(CODE.size, socket.MSG_DONTWAIT))
        except (OSError, struct.error):
            return None
        finally:
            self._control.close()
        return int(code)

    def _died(self, code: int) -> None:
        if self._last_resort is not None:
            self._last_resort.cancel()
        self._dead.set_result(None)
        self._burial = asyncio.create_task(self._bury(code), name="fencerow-child")

    async def _bury(self, code: int) -> None:
        """What it said last may still be on its way."""
        if self._listening is not None:
            await asyncio.wait({self._listening}, timeout=2 * LAST_WORDS_S)
            self._listening.cancel()
        if self._writer is not None:
            self._writer.close()
        if not self.started.done():
            self.started.set_result(False)
        if not self.gone.done():
            self.gone.set_result(code)


def kill_group(group: int) -> None:
    """End every process of a group that may be there still."""
    try:
        os.killpg(group, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass  # all of it has ended; macOS says so by "not permitted"


def _nobody(_why: Interrupt) -> None:
    """No attempt runs."""


def _log(line: WireLine) -> None:
    logger = logging.getLogger(line.name)
    if logger.isEnabledFor(line.level):
        fields = {
            **line.extra,
            "name": line.name,
            "levelno": line.level,
            "levelname": logging.getLevelName(line.level),
            "msg": line.message,
            "created": line.created,
            "threadName": line.thread,
            "exc_text": line.trace,
        }
        logger.handle(logging.makeLogRecord(fields))
