"""The webhook: where the channel brings inbound events. It says 200 once an event is committed, and not before."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import msgspec

from examples.chatbot.inbound import Event, receive

log = logging.getLogger("chatbot.receiver")


class Webhook(BaseHTTPRequestHandler):
    """POST an event. 400: it is none. 503: it could not be stored; bring it again."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        try:
            fresh = receive(msgspec.json.decode(body, type=Event))
        except msgspec.DecodeError as error:
            return self._answer(400, {"status": 400, "error": str(error)})
        except Exception:
            log.exception("an event could not be stored")
            return self._answer(503, {"status": 503})
        return self._answer(200, {"status": 200, "fresh": fresh})

    def _answer(self, status: int, body: dict[str, Any]) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 (its name there)
        """The jobs tell what came of it."""


@contextmanager
def listening() -> Iterator[str]:
    """Listen on a free port of this machine; gives the webhook's URL."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Webhook)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/events"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
