"""A terminal that is drawn on, and left as it was found: on q, on an error, on SIGTERM, and while we are stopped."""

from __future__ import annotations

import os
import select
import shutil
import signal
import sys
import termios
import tty
from collections.abc import Sequence
from types import FrameType, TracebackType
from typing import Any, Self

ENTER = "\x1b[?1049h\x1b[?25l"  # the alternate screen, without a cursor
LEAVE = "\x1b[?25h\x1b[?1049l"
HOME, TO_LINE_END, TO_SCREEN_END = "\x1b[H", "\x1b[K", "\x1b[J"
QUITS = b"qQ\x03\x04"
ENDS = (signal.SIGTERM, signal.SIGHUP)
WAKES = (signal.SIGWINCH, signal.SIGCONT)


class EndedBySignal(BaseException):
    """A signal asked the program to end. No handler for errors may catch it, so that the terminal is left first."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.exit_code = 128 + number


class TerminalScreen:
    """The whole terminal, while its block lasts. Entered in the main thread, with a terminal on both sides."""

    def __init__(self) -> None:
        self._input = sys.stdin.fileno()

    def __enter__(self) -> Self:
        self._found = termios.tcgetattr(self._input)
        self._heard, self._told = os.pipe()
        os.set_blocking(self._told, False)
        self._former: dict[int, Any] = {each: signal.signal(each, _end) for each in ENDS}
        self._former |= {each: signal.signal(each, self._changed) for each in WAKES}
        self._former[signal.SIGTSTP] = signal.signal(signal.SIGTSTP, self._stopped)
        try:
            self._take()
        except BaseException:  # a signal may end us already here
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._leave()
        for number, former in self._former.items():
            signal.signal(number, former)
        os.close(self._heard)
        os.close(self._told)

    @property
    def size(self) -> tuple[int, int]:
        """Columns and lines, as they are now."""
        found = shutil.get_terminal_size()
        return found.columns, found.lines

    def draw(self, lines: Sequence[str]) -> None:
        """Show these lines, which must fit, from the first line of the terminal on."""
        text = "\n".join(f"{line}{TO_LINE_END}" for line in lines)  # the terminal itself makes \r\n of it
        self._write(f"{HOME}{text}{TO_SCREEN_END}")

    def wake(self) -> None:
        """End a `quits`, from any thread."""
        try:
            os.write(self._told, b"!")
        except OSError:
            pass  # full, so it is awake; or closed, so nobody waits any more

    def quits(self, seconds: float) -> bool:
        """Wait so long, or until something changed; true if a key says that the program should end."""
        ready, _, _ = select.select([self._input, self._heard], [], [], seconds)
        if self._heard in ready:
            os.read(self._heard, 1000)
        if self._input not in ready:
            return False
        keys = os.read(self._input, 100)
        return not keys or any(key in QUITS for key in keys)  # nothing: the terminal is gone

    def _take(self) -> None:
        tty.setcbreak(self._input)
        self._write(ENTER)

    def _leave(self) -> None:
        self._write(LEAVE)
        termios.tcsetattr(self._input, termios.TCSADRAIN, self._found)

    def _changed(self, _number: int, _frame: FrameType | None) -> None:
        self.wake()

    def _stopped(self, _number: int, _frame: FrameType | None) -> None:
        """Ctrl-Z: the shell finds the terminal as it was; we take it again when we go on."""
        self._leave()
        os.kill(os.getpid(), signal.SIGSTOP)
        self._take()
        self.wake()

    def _write(self, text: str) -> None:
        sys.stdout.write(text)
        sys.stdout.flush()


def _end(number: int, _frame: FrameType | None) -> None:
    raise EndedBySignal(number)
