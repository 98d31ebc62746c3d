"""Who is asked before this process forks, so that nothing goes along which the child must not have; and how often it
was forked."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable
from typing import Protocol
from weakref import WeakSet

log = logging.getLogger("fencerow.db")

count = 0  # of the forks before this process; to ask the system for the process's id is a call of it for each submit


class Forked(Protocol):
    """Whoever holds something that must not cross a fork."""

    def before_fork(self) -> Callable[[], None]:
        """Let go of it, and take nothing until the fork is over: then the parent calls what this returns."""
        ...


_one_at_a_time = threading.RLock()
_asked: WeakSet[Forked] = WeakSet()
_over: list[Callable[[], None]] = []


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
    global count
    count += 1
    _over.clear()  # locks of the parent's; the child makes its own
    _one_at_a_time.release()


os.register_at_fork(before=_before, after_in_parent=_in_parent, after_in_child=_in_child)
