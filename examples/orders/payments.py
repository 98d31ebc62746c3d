"""A make-believe payment provider, over real HTTP: it charges, pays back, and sends no card anywhere.

It honours idempotency keys as good providers do: what comes again under a key is answered as the first time, and not
done again. It counts what it was asked and what it did, so that nobody has to believe the shop.
"""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

LIMIT_CENTS = 1_000_000  # who asks for more is declined


@dataclass
class Books:
    """What has happened at the provider, and how it behaves."""

    done: list[tuple[str, str]] = field(default_factory=list)  # what was done, and for which order
    answers: dict[str, tuple[int, dict[str, Any]]] = field(default_factory=dict)  # by idempotency key
    repeated: int = 0  # requests under a key that was known
    hold_after: int | None = None  # captures are done, and from this one on their answers wait ...
    release: threading.Event = field(default_factory=threading.Event)  # ... until this is set
    held: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def ask(self, what: str, order: str, cents: int, key: str | None) -> tuple[int, dict[str, Any]]:
        """Do it, once per key, and answer."""
        with self.lock:
            if key is not None and key in self.answers:
                self.repeated += 1
                return self.answers[key]
            answer = self._do(what, order, cents)
            if key is not None:
                self.answers[key] = answer
            waits = what == "capture" and self.hold_after is not None and self.count(what) >= self.hold_after
            self.held += waits
        if waits:
            self.release.wait()
        return answer

    def count(self, what: str) -> int:
        """How often that was done."""
        return sum(each == what for each, _ in self.done)

    def _do(self, what: str, order: str, cents: int) -> tuple[int, dict[str, Any]]:
        if cents > LIMIT_CENTS:
            return 402, {"error": "the card was declined"}
        self.done.append((what, order))
        return 200, {"id": f"pay-{len(self.done)}"}


class Provider(BaseHTTPRequestHandler):
    """POST /authorise, /capture or /refund, with the order and its cents as JSON."""

    books: Books

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        key = self.headers.get("Idempotency-Key")
        status, answer = self.books.ask(self.path.strip("/"), asked["order"], asked["cents"], key)
        body = json.dumps(answer).encode()
        try:
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
        except ConnectionError:
            pass  # who asked is gone; what was done is done

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 (the library's name)
        """Quiet: the books say it."""


def serve(books: Books, port: int = 0) -> ThreadingHTTPServer:
    """Start the provider in a thread; 0 is any free port. `shutdown()` and `server_close()` end it."""
    handler: type[Provider] = type("Serving", (Provider,), {"books": books})
    server = ThreadingHTTPServer(("127.0.0.1", port), handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
    return server
