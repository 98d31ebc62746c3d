"""The world outside, as a process of its own: a channel that delivers messages, and a provider of embeddings.

It honours idempotency keys as good channels do: the same key is delivered once, and answered alike each time. It
counts what it was asked and what it delivered, so that nobody has to believe the chatbot.

    python -m examples.chatbot.outside        # prints its URL
"""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from examples.chatbot.embedding import Hashing
from examples.chatbot.web import Refused, post

NOBODY = "+000"  # addresses that start so do not exist


@dataclass
class World:
    """What has happened out there."""

    delivered: dict[str, dict[str, Any]] = field(default_factory=dict)  # by idempotency key
    requests: int = 0
    repeated: int = 0  # requests under a key that was delivered before
    unkeyed: int = 0
    embed_calls: int = 0
    embed_texts: int = 0
    honours_keys: bool = True
    slow_s: float = 0.0  # how long a delivery takes
    unanswered_after: int | None = None  # deliver this many; of later ones the answer never comes
    failing: int = 0  # so many requests are answered with 503
    embeds_held: int = 0  # so many calls for embeddings wait until this is set to 0
    lock: threading.Lock = field(default_factory=threading.Lock)
    gate: threading.Event = field(default_factory=threading.Event)
    embed_gate: threading.Event = field(default_factory=threading.Event)

    def message(self, key: str | None, to: str, text: str) -> tuple[int, dict[str, Any]]:
        """Deliver a message, once per key."""
        threading.Event().wait(self.slow_s)
        with self.lock:
            self.requests += 1
            if self.failing:
                self.failing -= 1
                return 503, {"error": "try again later"}
            if to.startswith(NOBODY):
                return 422, {"error": f"there is nobody at {to}"}
            self.unkeyed += key is None
            if key is None or not self.honours_keys:
                key = f"request {self.requests}"
            self.repeated += (again := key in self.delivered)
            known = self.delivered.setdefault(
                key, {"id": f"m-{len(self.delivered) + 1}", "to": to, "text": text}
            )
            silent = self.unanswered_after is not None and len(self.delivered) > self.unanswered_after
        if silent:
            self.gate.wait()  # it is delivered, but the sender will not hear of it
        return (200 if again else 201), {"id": known["id"], "replay": again}

    def embeddings(self, texts: list[str]) -> dict[str, Any]:
        """What a provider of a model answers; this one's model is hashing."""
        with self.lock:
            self.embed_calls += 1
            self.embed_texts += len(texts)
            held, self.embeds_held = self.embeds_held > 0, max(0, self.embeds_held - 1)
        if held:
            self.embed_gate.wait()
        return {"data": [{"embedding": list(vector)} for vector in Hashing().embed(texts)]}

    def say(self, url: str, events: list[dict[str, Any]], times: int) -> dict[str, Any]:
        """Bring events to a webhook, each several times, as channels do whose queue is not sure of itself."""
        answers: list[int] = []
        for event in (event for event in events for _ in range(times)):
            try:
                answers.append(post(url, event)["status"])
            except Refused as error:
                answers.append(error.status_code)
        return {"answers": answers}

    def counts(self) -> dict[str, int]:
        with self.lock:
            return {
                "requests": self.requests,
                "delivered": len(self.delivered),
                "addresses": len({each["to"] for each in self.delivered.values()}),
                "repeated": self.repeated,
                "unkeyed": self.unkeyed,
                "embed_calls": self.embed_calls,
                "embed_texts": self.embed_texts,
            }

    def change(self, settings: Mapping[str, Any]) -> None:
        """Become slow, silent, or broken; or well again."""
        for name, value in settings.items():
            if name not in ("honours_keys", "slow_s", "unanswered_after", "failing", "embeds_held"):
                raise ValueError(f"there is nothing called {name} to be changed")
            setattr(self, name, value)
        if settings.get("unanswered_after", 0) is None:
            self.gate.set()
        if settings.get("embeds_held") == 0:
            self.embed_gate.set()


class Handler(BaseHTTPRequestHandler):
    """HTTP around the world."""

    protocol_version = "HTTP/1.1"
    world: World

    def do_GET(self) -> None:
        if self.path == "/counts":
            return self._answer(200, self.world.counts())
        if self.path == "/deliveries":
            return self._answer(200, dict(self.world.delivered))
        return self._answer(404, {"error": self.path})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path == "/v1/messages":
            return self._answer(
                *self.world.message(self.headers["Idempotency-Key"], body["to"], body["text"])
            )
        if self.path == "/v1/embeddings":
            return self._answer(200, self.world.embeddings(body["input"]))
        if self.path == "/say":
            return self._answer(200, self.world.say(body["url"], body["events"], body["times"]))
        if self.path == "/change":
            self.world.change(body)
            return self._answer(200, {})
        return self._answer(404, {"error": self.path})

    def _answer(self, status: int, body: Mapping[str, Any]) -> None:
        data = json.dumps(body).encode()
        try:
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)
        except ConnectionError:
            self.close_connection = True  # who asked is dead, and what was delivered is delivered

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 (its name there)
        """It counts; that is enough."""


def main() -> None:
    Handler.world = World()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(f"http://127.0.0.1:{server.server_address[1]}", flush=True)
    sys.stdin.read()  # until whoever started it is gone, however that happened


if __name__ == "__main__":
    main()
