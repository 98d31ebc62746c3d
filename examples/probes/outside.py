"""The world outside, as a process of its own: the registry, and providers that are quick, slow, broken, silent.

It counts how many requests are at each provider at once, so that nobody has to believe the prober.

    python -m examples.probes.outside        # prints its URL
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

# How long an answer of each kind takes.
TAKES_S = {"upload": 0.2, "retrieve": 0.05, "lifecycle": 0.4}
# What becomes of a request: an answer, one after four times as long, an error, none at all, or one that never ends.
MANNERS = {
    "amber": "quick",
    "birch": "quick",
    "cedar": "quick",
    "delta": "slow",
    "ember": "broken",
    "flint": "silent",
    "grove": "dripping",
}


@dataclass
class World:
    """What happens out there."""

    manners: dict[str, str] = field(default_factory=lambda: dict(MANNERS))
    blocked: list[str] = field(default_factory=list)
    registry: int = 200  # what it answers; 204: nobody is listed
    held: str | None = None  # requests at this provider wait until this changes
    here: Counter[str] = field(default_factory=Counter)  # requests under way
    most: Counter[str] = field(default_factory=Counter)  # at once, of each; "" is all together
    arrived: dict[str, list[float]] = field(default_factory=dict)
    changed: threading.Condition = field(default_factory=threading.Condition)

    def comes(self, provider: str) -> None:
        with self.changed:
            self.arrived.setdefault(provider, []).append(time.monotonic())
            for name in (provider, ""):
                self.here[name] += 1
                self.most[name] = max(self.most[name], self.here[name])
            self.changed.wait_for(lambda: self.held != provider)

    def goes(self, provider: str) -> None:
        with self.changed:
            self.here.subtract((provider, ""))

    def change(self, settings: Mapping[str, Any]) -> None:
        with self.changed:
            for name, value in settings.items():
                if name not in ("manners", "blocked", "registry", "held"):
                    raise ValueError(f"there is nothing called {name} to be changed")
                setattr(self, name, value)
            self.changed.notify_all()

    def counts(self) -> dict[str, Any]:
        with self.changed:
            return {"here": dict(self.here), "most": dict(self.most), "arrived": self.arrived}


class Handler(BaseHTTPRequestHandler):
    """HTTP around the world."""

    world: World
    url: str

    def do_GET(self) -> None:
        if self.path == "/counts":
            return self._answer(200, self.world.counts())
        if self.world.registry >= 500:
            return self._answer(self.world.registry, {"error": "try again later"})
        names = self.world.manners if self.world.registry == 200 else {}
        blocked = self.world.blocked
        return self._answer(
            200, [{"name": each, "url": f"{self.url}/{each}", "blocked": each in blocked} for each in names]
        )

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        if self.path == "/change":
            self.world.change(json.loads(body))
            return self._answer(200, {})
        _, provider, kind = self.path.split("/")
        self.world.comes(provider)
        try:
            self._probed(self.world.manners[provider], TAKES_S[kind])
        finally:
            self.world.goes(provider)

    def _probed(self, manner: str, takes_s: float) -> None:
        match manner:
            case "silent":
                self._while_somebody_waits(b"")
            case "dripping":
                self.send_response(200)
                self.end_headers()
                self._while_somebody_waits(b".")
            case "broken":
                self._answer(500, {"error": "out of order"})
            case _:
                time.sleep(takes_s * (4 if manner == "slow" else 1))
                self._answer(200, {})

    def _while_somebody_waits(self, drop: bytes) -> None:
        self.connection.settimeout(0.2)
        while True:
            try:
                if drop:
                    self.wfile.write(drop)
                if self.connection.recv(1) == b"":
                    return
            except TimeoutError:
                continue
            except OSError:
                return

    def _answer(self, status: int, body: object) -> None:
        data = json.dumps(body).encode()
        try:
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)
        except ConnectionError:
            self.close_connection = True  # who asked is dead

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 (its name there)
        """It counts; that is enough."""


def main() -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Handler.world, Handler.url = World(), f"http://127.0.0.1:{server.server_address[1]}"
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(Handler.url, flush=True)
    sys.stdin.read()  # until whoever started it is gone, however that happened


if __name__ == "__main__":
    main()
