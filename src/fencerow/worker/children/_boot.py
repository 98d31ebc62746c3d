"""Become a child process of a worker. Run as a script in a fresh interpreter; argument: the connection's number.

Everything that must hold before anything of the user's is imported happens here, with the standard library alone.
"""

import ctypes
import json
import os
import resource
import signal
import socket
import struct
import sys

PR_SET_PDEATHSIG = 1


def main(number: int) -> None:
    connection = socket.socket(fileno=number)
    start = json.loads(received(connection, struct.unpack("!I", received(connection, 4))[0]))
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    # The worker may have died before the line above; the signal would then never come.
    if os.getppid() != start["parent"]:
        sys.exit("the worker that wanted this process is gone")
    limit = start["memory_bytes_max"]
    if limit is not None:
        try:
            resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        except (ValueError, OSError) as error:  # macOS knows the limit and does not take it
            sys.stderr.write(f"fencerow: this system sets no memory limit: {error}\n")
    sys.path[:] = start["path"]
    sys.argv[:] = start["argv"]

    from fencerow.worker.children.service import serve

    serve(connection, start)


def received(connection: socket.socket, size: int) -> bytes:
    found = b""
    while len(found) < size:
        part = connection.recv(size - len(found))
        if not part:
            sys.exit("the worker that wanted this process is gone")
        found += part
    return found


if __name__ == "__main__":
    main(int(sys.argv[1]))
