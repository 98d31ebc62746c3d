"""The process of which starters are forked: it has imported all of ours and nothing of any application.

Started as a module; argument: the number of a connected socket. Who asks may end at any time: then this ends too.
"""

from __future__ import annotations

import gc
import os
import signal
import socket
import sys
import time
import traceback
from pathlib import Path
from typing import NoReturn

from fencerow_proof.check import _starter
from fencerow_proof.check.wire import Channel, End, Over, Start, Started


def main(descriptor: int) -> None:
    """Serve the process that started this one until it goes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # of a terminal it comes to all; who asks decides
    channel = Channel(socket.socket(fileno=descriptor))
    gc.collect()
    gc.freeze()  # what is shared with the forks stays shared
    while True:
        match channel.heard_from_director():
            case Start() as order:
                pid = os.fork()
                if pid == 0:
                    channel.close()
                    _become(order)
                channel.send(Started(pid))
            case End(pid):  # it is awaited here and nowhere else, so the number is still its own
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
                channel.send(Over())
            case _:
                return


def _become(order: Start) -> NoReturn:
    """Be what a process would be that was started by this order."""
    code = 1
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        with Path(order.log).open("ab") as log:
            os.dup2(log.fileno(), sys.stdout.fileno())
            os.dup2(log.fileno(), sys.stderr.fileno())
        os.chdir(order.folder)
        os.environ.clear()
        for name, _, value in (os.fsdecode(each).partition("=") for each in order.environment):
            os.environ[name] = value
        time.tzset()
        _starter.main(order.address)
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    main(int(sys.argv[1]))
