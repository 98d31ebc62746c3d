"""Pairs of sockets by which our threads and processes tell each other something."""

from __future__ import annotations

import socket


def socket_pair() -> tuple[socket.socket, socket.socket]:
    """Two ends that wait for as long as it takes.

    An application may have called `socket.setdefaulttimeout`, so that no request hangs for ever. A socket made then is
    non-blocking for the system, also in the process that inherits it, where a read that finds nothing looks like the
    end of the other side.
    """
    ends = socket.socketpair()
    for each in ends:
        each.setblocking(True)
    return ends
