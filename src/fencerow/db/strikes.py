"""Exceptions raised in a thread from outside, and where they may not land.

A plain handler that must end has an exception raised in its thread, between any two of its instructions. Between a
lock that was just taken and the `try` that gives it back, that would close the lock for ever. So our own code, where a
handler's thread can be in it, is sheltered: a strike that comes meanwhile is remembered, and raised when the outermost
shelter is left. All of it goes by this file.

    with SHELTER:                     # or @sheltered on a function, Doorway around a context manager
        ...

A strike is seen to arrive by the making of its exception (`arrived`). One that was sent and has not arrived when a
shelter is entered is called back and raised there, at the door, where nothing has begun. One that lands in a callback
of the interpreter's (a finalizer, a weak reference that dies) is swallowed by it; that is noticed, and it is
sent again.

Code of others is not sheltered, and may take locks as well: that is theirs to bear in mind. Only the log is different.
Everybody writes to it, all threads take its locks, and until Python 3.13 it takes them before its `try`. So a thread
that is just in `logging` is struck when it comes out.

The last gap is the first instruction of an `__exit__`, which no code of ours can stand before. So what a block has
opened is noted, and whatever a struck call leaves open is closed when the call is over (`close_open`).
"""

from __future__ import annotations

import _thread
import ctypes
import functools
import logging
import sys
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
Close = Callable[[BaseException | None], object]

AGAIN_S = 0.01  # until a callback that swallowed a strike is surely over; or a line of the log, most likely
LOGGING = logging.Logger.handle.__code__.co_filename


class Striker:
    """Raises an exception in the thread that runs one call, and never anywhere but in that call.

    It begins sheltered, opens for the call, and is sheltered for good when that is over: a late exception would strike
    the next job on the same thread, or the thread itself.
    """

    def __init__(self) -> None:
        # Of the kind that is written in C: between taking it in a `with` and the body nothing can strike. It may be
        # taken again by the same thread, for a finalizer that runs while it is closed.
        self._lock = threading.RLock()
        self._depth = 1  # how many shelters this thread is in; only that thread changes it
        self._ident: int | None = None
        self.last: type[BaseException] | None = None  # what it struck with
        self._over = False
        self._sent: type[BaseException] | None = None  # on its way, not arrived
        self._kept: type[BaseException] | None = None  # came while sheltered
        self._open: dict[object, Close] = {}  # by whoever opened it, in that order

    def run(self, call: Callable[[], T]) -> tuple[list[T], BaseException | None]:
        """Run the call in this thread, open for strikes; returns what it returned, if it did, and what it raised.

        Nothing is raised here. A strike that comes when the call has returned is dropped.
        """
        _watch_the_swallowed()
        outer, here.striker = here.striker, self
        self._ident = threading.get_ident()
        returned: list[T] = []
        error: BaseException | None = None
        try:
            try:
                try:
                    self.leave()
                    returned.append(call())
                except BaseException as raised:
                    error = raised
                self._end()
            except BaseException as late:  # it struck between the lines above
                error = error or late
                self._end()
        except BaseException as late:  # and so did a repeated one; there are no more than two
            error = error or late
            self._end()
        here.striker = outer
        try:
            return returned, None if returned else error
        finally:
            # This frame is in its traceback: what the call had would wait for the garbage collector.
            del error

    def strike(self, error: type[BaseException], *, again: bool = False) -> bool:
        """Raise at the thread's next Python instruction that is not sheltered; false when there is nothing to strike.

        At most once, and a second time with `again`. Code that waits in C (a lock, a socket, a long query) sees it
        only when it comes back. The class is instantiated without arguments, and says so by `arrived`.
        """
        with self._lock:
            if self._over or (self.last is not None and not again):
                return False
            self.last = error
            if self._depth:
                self._kept = error
            else:
                assert self._ident is not None
                if _is_logging(self._ident):
                    self._strike_soon(error)
                else:  # at once: the thread runs again only if the interpreter switches just between these lines
                    self._sent = error
                    _set_exception(self._ident, error)
            return True

    def enter(self) -> None:
        """Go into a shelter. What was on its way is raised now, or never in there."""
        if self._depth:
            self._depth += 1
            return
        try:
            with self._lock:  # from now on nobody sends anything
                self._depth = 1
                self._call_back()
        except BaseException:  # it struck in here, so the shelter is not entered
            self._depth = 0
            raise
        if self._kept is not None:
            self.leave()

    def leave(self) -> None:
        """Leave a shelter. Outside the last one, what came meanwhile is raised."""
        if self._depth > 1:
            self._depth -= 1
            return
        with self._lock:
            self._depth = 0
            error, self._kept = self._kept, None
        if error is not None:
            raise error()

    def arrive(self) -> None:
        """What was sent is being raised."""
        self._sent = None

    def close_open(self, error: BaseException | None) -> None:
        """Close what the call has left open, in its thread, when nothing can strike any more.

        An error of that is a note on the first one.
        """
        while self._open:
            _, close = self._open.popitem()
            try:
                close(error)
            except BaseException as second:
                if error is not None and second is not error:
                    error.add_note(f"closing what was left open failed too: {second!r}")

    def opened(self, opener: object, close: Close) -> None:
        """To be closed when the call is over, unless it is said to be closed before. Call it sheltered."""
        self._open[opener] = close

    def closed(self, opener: object) -> None:
        """It is being closed. Call it sheltered."""
        self._open.pop(opener, None)

    def swallowed(self, error: type[BaseException]) -> None:
        """What was raised went no further than a callback. Sent again from elsewhere, when that is over."""
        self._strike_soon(error)

    def _strike_soon(self, error: type[BaseException]) -> None:
        def send() -> None:
            time.sleep(AGAIN_S)
            self.strike(error, again=True)

        _thread.start_new_thread(send, ())  # a Thread would be waited for, and might strike that wait

    def _call_back(self) -> None:
        if self._sent is not None and self._ident is not None:
            _set_exception(self._ident, None)
            self._kept, self._sent = self._sent, None  # None if it has struck just before

    def _end(self) -> None:
        with self._lock:
            self._depth, self._over = 1, True
            self._call_back()
            self._kept = None


class Here(threading.local):
    """Who strikes in this thread, if anybody: only such a thread needs shelters."""

    striker: Striker | None = None


here = Here()


_hook_before: Callable[[Any], object] = sys.unraisablehook


def _watch_the_swallowed() -> None:
    """See what callbacks swallow. All else goes to the hook that was there."""
    global _hook_before
    if sys.unraisablehook is not _seen_swallowed:
        _hook_before, sys.unraisablehook = sys.unraisablehook, _seen_swallowed


def _seen_swallowed(told: Any) -> None:
    striker = here.striker
    if striker is not None and striker.last is not None and told.exc_type is striker.last:
        striker.swallowed(striker.last)
    else:
        _hook_before(told)


def arrived() -> None:
    """To be called by the constructor of an exception that is raised by a strike, in the thread that it strikes."""
    if here.striker is not None:
        here.striker.arrive()


def opened(opener: object, close: Close) -> None:
    """Something was opened for a block of this thread; see `Striker.opened`."""
    if here.striker is not None:
        here.striker.opened(opener, close)


def closed(opener: object) -> None:
    """It is being closed by its block."""
    if here.striker is not None:
        here.striker.closed(opener)


class Shelter:
    """A block in which nothing strikes. Costs next to nothing in threads that nobody strikes."""

    def __enter__(self) -> None:
        if here.striker is not None:
            here.striker.enter()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if here.striker is not None:
            here.striker.leave()


SHELTER = Shelter()


def sheltered(function: Callable[P, T]) -> Callable[P, T]:
    """All of the function in a shelter."""

    @functools.wraps(function)
    def inside(*args: P.args, **kwargs: P.kwargs) -> T:
        if here.striker is None:
            return function(*args, **kwargs)
        with SHELTER:
            return function(*args, **kwargs)

    return inside


class Doorway(AbstractContextManager[T_co]):
    """A context manager whose entering and leaving are sheltered; the block between them, which is others', is not.

    One that was struck while it was entered is left at once: its caller would never come to leaving it.
    """

    def __init__(self, inner: AbstractContextManager[T_co]) -> None:
        self._inner = inner
        self._is_open = False

    def __enter__(self) -> T_co:
        try:
            with SHELTER:
                value = self._inner.__enter__()
                self._is_open = True
                opened(self, self._close)
        except BaseException as error:
            with SHELTER:
                self._close(error)
            raise
        return value

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        try:
            with SHELTER:
                return self._leave(kind, error, trace)
        except BaseException as raised:
            with SHELTER:  # struck at the door, so that nothing was left
                self._close(raised)
            raise

    def _leave(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        self._is_open = False
        closed(self)
        return self._inner.__exit__(kind, error, trace)

    def _close(self, error: BaseException | None) -> None:
        if self._is_open:
            self._leave(type(error) if error else None, error, error.__traceback__ if error else None)


def doorway(function: Callable[P, AbstractContextManager[T]]) -> Callable[P, Doorway[T]]:
    """A function that makes context managers makes doorways."""

    @functools.wraps(function)
    def made(*args: P.args, **kwargs: P.kwargs) -> Doorway[T]:
        return Doorway(function(*args, **kwargs))

    return made


def _is_logging(ident: int) -> bool:
    """Whether this thread is in `logging`, or in what that has called."""
    frame = sys._current_frames().get(ident)  # pyright: ignore[reportPrivateUsage] (documented, for debuggers)
    while frame is not None and frame.f_code.co_filename != LOGGING:
        frame = frame.f_back
    return frame is not None


def _set_exception(ident: int, error: type[BaseException] | None) -> None:
    held = None if error is None else ctypes.py_object(error)
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(ident), held)
