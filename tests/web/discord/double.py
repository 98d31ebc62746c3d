"""Discord's side: who signs interactions, and an HTTP server that stands for its API."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from fencerow.web.discord.interaction import EPOCH_MS, SEQUENCE_BITS

APPLICATION = "4711"


@dataclass
class Signs:
    """Discord's own key, and interactions signed by it."""

    key: Ed25519PrivateKey = field(default_factory=Ed25519PrivateKey.generate)
    number: int = 0

    @property
    def public(self) -> str:
        return self.key.public_key().public_bytes_raw().hex()

    def new(
        self, name: str = "ask", kind: int = 2, *, at_s: float | None = None, **data: Any
    ) -> dict[str, Any]:
        """An interaction of now, or of then."""
        self.number += 1
        made_ms = round((time.time() if at_s is None else at_s) * 1000)
        told = {"name": name} if kind == 2 else {"custom_id": name}
        return {
            "id": str((made_ms - EPOCH_MS) << SEQUENCE_BITS | self.number),
            "application_id": APPLICATION,
            "type": kind,
            "token": f"secret-token-{self.number}",
            "channel_id": "77",
            "member": {"user": {"id": "9"}},
            "data": {**told, **data},
        }

    def sent(self, interaction: dict[str, Any], *, at_s: float | None = None) -> tuple[dict[str, str], bytes]:
        """The headers and the body of its request."""
        body = json.dumps(interaction).encode()
        timestamp = str(int(time.time() if at_s is None else at_s))
        signature = self.key.sign(timestamp.encode() + body).hex()
        return {
            "content-type": "application/json",
            "x-signature-ed25519": signature,
            "x-signature-timestamp": timestamp,
        }, body


@dataclass
class Api:
    """What came to the server that stands for Discord's API; `answers` are given in their order, then 200."""

    url: str = ""
    seen: list[tuple[str, str, Any, str | None]] = field(default_factory=list)
    answers: list[tuple[int, dict[str, str], Any]] = field(default_factory=list)
    came: threading.Condition = field(default_factory=threading.Condition)

    def edits(self) -> list[str]:
        """The texts of all edits, in their order."""
        return [document["content"] for method, _, document, _ in self.seen if method == "PATCH"]

    def typings(self) -> int:
        """How often "is typing" was shown."""
        return sum(path.endswith("/typing") for _, path, _, _ in self.seen)

    def wait(self, count: int, patience_s: float) -> None:
        """Until so many requests have come."""
        with self.came:
            assert self.came.wait_for(lambda: len(self.seen) >= count, patience_s), self.seen

    def take(self, method: str, path: str, body: bytes, who: str | None) -> tuple[int, dict[str, str], Any]:
        with self.came:
            self.seen.append((method, path, json.loads(body or b"null"), who))
            self.came.notify_all()
            return self.answers.pop(0) if self.answers else (200, {}, {"id": "1"})


@contextmanager
def discord_api() -> Iterator[Api]:
    """A server on a port of its own."""
    api = Api()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_any(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length") or 0))
            status, headers, document = api.take(
                self.command, self.path, body, self.headers.get("authorization")
            )
            told = json.dumps(document).encode()
            self.send_response(status)
            for name, value in {**headers, "content-length": str(len(told))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(told)

        do_PATCH = do_POST = do_any  # noqa: N815 - the names are the library's

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    api.url = f"http://127.0.0.1:{server.server_address[1]}"
    serving = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    serving.start()
    try:
        yield api
    finally:
        server.shutdown()
        server.server_close()
