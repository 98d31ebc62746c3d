"""What a service manager (systemd, `Type=notify`) is told: that we are ready, alive, leaving, and what we do.

The protocol is one datagram of lines to the socket that $NOTIFY_SOCKET names; see sd_notify(3).
"""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import MutableMapping
from typing import Self

from fencerow.supervisor.standing import Standing

log = logging.getLogger("fencerow.supervisor")

SEND_S = 1.0
EXTENDED_US = 15_000_000  # from one message to the next a leaving service has so long
MICROS = 1_000_000


class Notifier:
    """Tells the service manager how we stand. `watchdog_s`: it ends us when it has not heard for so long."""

    def __init__(self, address: str | bytes, watchdog_s: float | None = None) -> None:
        self._address = address
        self._watchdog_s = watchdog_s
        self._said: set[str] = set()
        self._status = ""
        self._is_broken = False

    @classmethod
    def from_environment(cls, environ: MutableMapping[str, str]) -> Self | None:
        """The one that the service manager waits for; None where nobody does.

        It takes the variables out of the environment: what we start must not speak in our name.
        """
        name = environ.pop("NOTIFY_SOCKET", "")
        watchdog_us, watched = environ.pop("WATCHDOG_USEC", ""), environ.pop("WATCHDOG_PID", "")
        if not name:
            return None
        if name[0] not in "@/":
            log.warning(
                "NOTIFY_SOCKET is %s: neither a path nor an abstract socket, so nobody is told", ascii(name)
            )
            return None
        # The name of an abstract socket begins with a zero byte, which a variable cannot hold.
        address = b"\0" + os.fsencode(name[1:]) if name[0] == "@" else os.fsencode(name)
        ours = watchdog_us.isascii() and watchdog_us.isdigit() and watched in ("", str(os.getpid()))
        return cls(address, int(watchdog_us) / MICROS if ours and int(watchdog_us) else None)

    @property
    def beat_s(self) -> float:
        """How often it wants to be told at least."""
        return 1.0 if self._watchdog_s is None else min(1.0, self._watchdog_s / 3)

    def tell(self, standing: Standing) -> None:
        """Say what has changed, and that we are alive. Without effect where the socket is gone."""
        lines = self._lines(standing)
        if lines:
            self._send("\n".join(lines))

    def _lines(self, standing: Standing) -> list[str]:
        lines = []
        if standing.is_ready and self._is_news("READY=1"):
            lines.append("READY=1")
        if standing.is_leaving and self._is_news("STOPPING=1"):
            lines.append("STOPPING=1")
        if standing.is_alive and self._watchdog_s is not None:
            lines.append("WATCHDOG=1")
        if standing.is_alive and standing.is_leaving:
            # A drain ends by itself; TimeoutStopSec is for one that stands still.
            lines.append(f"EXTEND_TIMEOUT_USEC={EXTENDED_US}")
        status = "; ".join((standing.status, *standing.faults))
        if status != self._status:
            self._status = status
            lines.append(f"STATUS={status}")
        return lines

    def _is_news(self, line: str) -> bool:
        news = line not in self._said
        self._said.add(line)
        return news

    def _send(self, text: str) -> None:
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
                sender.settimeout(SEND_S)
                sender.sendto(text.encode(), self._address)
        except OSError as error:
            if not self._is_broken:
                log.warning("the service manager cannot be told how we are: %s", error)
            self._is_broken = True
        else:
            self._is_broken = False
