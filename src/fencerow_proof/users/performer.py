"""An actor while it is played: a thread that runs the user's code, and a gate before each of its statements."""

from __future__ import annotations

import sys
import threading
import traceback
from collections.abc import Callable
from typing import Any

Tell = Callable[[str, str, bool], None]
"""Called with the actor, the line, and whether it tells what another's step has set free."""


class Abandoned(BaseException):
    """The play is over before the actor was. Not an Exception, so that no retry of the user's catches it."""


class Performer:
    """One actor in one order. `hall` guards everything here and is told of every change.

    The user's code runs in threads that stop in `arrive`; whoever directs the play calls `let_go`.
    """

    def __init__(self, name: str, hall: threading.Condition, tell: Tell) -> None:
        self.name = name
        self.hall = hall
        self.stepping = False  # while connections are opened and closed, everything passes
        self.arrived: str | None = None  # the statement that waits to be let go
        self.doing = ""  # the statement that was let go last
        self.meant: tuple[str, ...] = ()  # its texts, whole
        self.said: set[str] = set()  # everything it ever asked for, steps or not
        self.answers = 0  # that it got
        self.in_flight = 0  # requests on their way to the server and back
        self.blocked_by: tuple[str, ...] = ()  # whose locks it waits for
        self.held = False  # stopped between its snapshot and its change
        self.victim = False  # chosen to be told of a deadlock
        self.ends = 0  # transactions that ended since somebody looked
        self.ready = True  # an arrived one that lost to a lock is not ready until something has changed
        self.timed_out = False  # it has waited long enough for that lock
        self.abandoned = False
        self.done = False
        self.result: Any = None
        self.error: BaseException | None = None
        self._tell = tell
        self._thread: threading.Thread | None = None

    # --- for the director ----------------------------------------------------------------------------

    @property
    def is_moving(self) -> bool:
        """Whether it is between two gates: in the user's code or in the database."""
        return not self.done and self.arrived is None

    @property
    def may_go(self) -> bool:
        return not self.done and (self.held or (self.arrived is not None and self.ready))

    def start(self, work: Callable[[], Any]) -> None:
        """Run the user's code up to its first statement."""
        self._thread = threading.Thread(
            target=self._perform, args=[work], name=f"fencerow-{self.name}", daemon=True
        )
        self._thread.start()

    def let_go(self) -> None:
        """Let the waiting statement go."""
        with self.hall:
            assert self.arrived is not None
            self.doing, self.arrived = self.arrived, None
            self.hall.notify_all()

    def abandon(self) -> None:
        """Let nothing go any more."""
        with self.hall:
            self.abandoned = True
            self.hall.notify_all()

    def join(self, timeout_s: float) -> bool:
        """Wait until the user's code is over; false when it still runs."""
        if self._thread is not None:
            self._thread.join(timeout_s)
            return not self._thread.is_alive()
        return True

    def where(self) -> str:
        """Where the user's code is now, for an error about it."""
        frames = sys._current_frames()  # pyright: ignore[reportPrivateUsage] (its only way)
        frame = frames.get(self._thread.ident or 0) if self._thread is not None else None
        return "".join(traceback.format_stack(frame, limit=None)[-3:]).rstrip() if frame else "nowhere"

    # --- for the gates -------------------------------------------------------------------------------

    def arrive(self, text: str, meant: tuple[str, ...] = ()) -> None:
        """Stop before a statement until it is let go; `meant` are its texts, whole.

        Raises:
            Abandoned: it never will be.
        """
        with self.hall:
            if not self.stepping:
                return
            while self.arrived is not None and not self.abandoned:
                self.hall.wait()  # another connection of the same actor is first
            self.arrived, self.ready = text, True
            self._wait()
            self.meant = meant

    def lose(self) -> bool:
        """Stop after a statement met another's lock, until it may try again; false when it has waited enough."""
        with self.hall:
            self.arrived, self.ready = self.doing, False
            self._wait()
            timed_out, self.timed_out = self.timed_out, False
            return not timed_out

    def sent(self) -> None:
        """A request is on its way."""
        with self.hall:
            self.in_flight += 1
            self.hall.notify_all()

    def answered(self, line: str | None, *, ended: bool) -> None:
        """The reply is there. `line` tells of it, `ended` whether a transaction is over with it."""
        with self.hall:
            self.in_flight = max(0, self.in_flight - 1)
            self.answers += 1
            freed = bool(self.blocked_by)
            self.blocked_by, self.held, self.victim = (), False, False
            self.ends += ended and self.stepping
            if line is not None and self.stepping:
                self._tell(self.name, line, freed)
            self.hall.notify_all()

    def note(self, line: str) -> None:
        """Tell of something that is no step."""
        with self.hall:
            if self.stepping:
                self._tell(self.name, line, False)

    # --- inside --------------------------------------------------------------------------------------

    def _wait(self) -> None:
        self.hall.notify_all()
        while self.arrived is not None and not self.abandoned:
            self.hall.wait()
        if self.abandoned:
            self.arrived = None
            raise Abandoned

    def _perform(self, work: Callable[[], Any]) -> None:
        result: Any = None
        error: BaseException | None = None
        try:
            result = work()
        except BaseException as raised:
            error = raised
        with self.hall:
            self.result, self.error, self.done = result, error, True
            self.in_flight = 0
            self.hall.notify_all()
