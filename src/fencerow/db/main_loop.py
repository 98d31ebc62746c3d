"""The event loop of a process of ours, which a job's code does not end.

asyncio lets SystemExit and KeyboardInterrupt out of the loop at once, wherever in it they are raised. In a handler
itself they are caught. In a task that a handler has started (`asyncio.gather`, a library that gives up) they would end
the worker, with its neighbours and their outcomes, and with the job's exit code.
"""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Coroutine
from typing import Any, TypeVar
from weakref import WeakSet

T = TypeVar("T")

log = logging.getLogger("fencerow.worker")

_ours: WeakSet[asyncio.AbstractEventLoop] = WeakSet()


def run_main(main: Coroutine[Any, Any, T]) -> T:
    """`asyncio.run`, but what a task or a callback raises to end the process ends that alone.

    Whoever awaits the task gets the exception: so the handler that has started it fails, as if it had raised it itself.
    """
    with asyncio.Runner() as runner:
        loop = runner.get_loop()
        _ours.add(loop)
        task = loop.create_task(main)
        while True:
            try:
                return loop.run_until_complete(task)
            except (SystemExit, KeyboardInterrupt) as error:
                if task.done() or ends_process(error, loop):
                    raise
                log.error("a task wanted to end this process, and ends alone: %r", error, exc_info=error)


def ends_process(error: BaseException, loop: asyncio.AbstractEventLoop) -> bool:
    """Whether the process shall end by this error: in a loop of the user's, or because a person asked by Ctrl-C.

    Where signals have a handler of ours, nobody but a job's code raises KeyboardInterrupt.
    """
    if loop not in _ours:
        return True
    is_python = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    return isinstance(error, KeyboardInterrupt) and is_python
