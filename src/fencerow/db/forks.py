"""Who is asked before this process forks, so that nothing goes along which the child must not have; and which process
this is.

A fork by code that is not Python's (uWSGI forks so) asks nobody before, and tells nobody after. A page that the kernel
empties for every child shows it all the same, for much less than to ask the system for the process's id costs.
"""

from __future__ import annotations

import logging
import mmap
import os
import sys
import threading
from collections.abc import Callable
from typing import Protocol
from weakref import WeakSet

log = logging.getLogger("fencerow.db")

EMPTY = b"\0"
WIPE_ON_FORK = 18  # MADV_WIPEONFORK of Linux, since 4.14; Python has no name for it


class Forked(Protocol):
    """Whoever holds something that must not cross a fork."""

    def before_fork(self) -> Callable[[], None]:
        """Let go of it, and take nothing until the fork is over: then the parent calls what this returns."""
        ...


_one_at_a_time = threading.RLock()
_asked: WeakSet[Forked] = WeakSet()
_over: list[Callable[[], None]] = []


def _wiped_in_children() -> mmap.mmap | bytes:
    """A page of which a child finds an empty one. Where there is no such thing, it is always empty."""
    if sys.platform != "linux":
        return EMPTY
    try:
        page = mmap.mmap(-1, mmap.PAGESIZE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        page.madvise(WIPE_ON_FORK)
    except OSError:
        return EMPTY
    return page


_page = _wiped_in_children()
_count = 0  # of the forks before this process, as far as anybody told; ids of processes come again
_process = (0, 0)
_making: dict[tuple[int, int], threading.RLock] = {}


def process() -> tuple[int, int]:
    """Which process this is: another value than in all that it was forked from."""
    global _process
    if not _page[0]:
        _process = (_count, os.getpid())
        if isinstance(_page, mmap.mmap):
            _page[0] = 1  # last: another thread that finds it so finds the process, too
    return _process


class MadeAnew:
    """What each process makes for itself: a child begins with nothing of what its parent had."""

    _made_in: tuple[int, int] | None = None

    def _forget(self) -> None:
        """Have nothing made, and leave alone what is a parent's."""
        raise NotImplementedError

    def _check_process(self) -> None:
        """Before each use."""
        if _page[0] and self._made_in is _process:
            return  # nearly always: a submit asks four times
        if self._made_in != (here := process()):
            with _making.setdefault(here, threading.RLock()):  # a lock of the parent's may be held for ever
                if self._made_in != here:
                    self._forget()
                    self._made_in = here


def ask(forked: Forked) -> None:
    """It is asked before each fork from now on, for as long as it lives."""
    with _one_at_a_time:
        _asked.add(forked)


def _before() -> None:
    _one_at_a_time.acquire()
    for each in list(_asked):
        try:
            _over.append(each.before_fork())
        except Exception:  # a fork is not prevented from here
            log.exception("%r could not prepare for a fork of this process", each)


def _in_parent() -> None:
    try:
        while _over:
            _over.pop()()
    finally:  # else the next fork would wait for ever
        _one_at_a_time.release()


def _in_child() -> None:
    global _count
    _count += 1
    _over.clear()  # locks of the parent's; the child makes its own
    _one_at_a_time.release()


os.register_at_fork(before=_before, after_in_parent=_in_parent, after_in_child=_in_child)
