"""What stands for Discord in the show and in tests: it signs interactions, takes replies, and serves attachments.

No part of the bot.
"""

from __future__ import annotations

import json
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

EPOCH_MS, SEQUENCE_BITS = 1_420_070_400_000, 22


@dataclass
class StandIn:
    """Discord, as far as a bot sees it. `refusals` are answered first, in their order, to who replies."""

    url: str = ""
    files: dict[str, str] = field(default_factory=dict)
    refusals: list[tuple[int, dict[str, Any]]] = field(default_factory=list)
    replies: list[tuple[str, str]] = field(default_factory=list)  # the interaction's token, and the text
    typings: int = 0
    key: Ed25519PrivateKey = field(default_factory=Ed25519PrivateKey.generate)
    moved: threading.Condition = field(default_factory=threading.Condition)
    count: int = 0

    @property
    def environment(self) -> dict[str, str]:
        """What a bot is told so that it finds this, instead of Discord."""
        return {
            "FENCEROW_DISCORD_PUBLIC_KEY": self.key.public_key().public_bytes_raw().hex(),
            "DISCORD_API": self.url,
            "DISCORD_CDN": f"{self.url}/files/",
            "DISCORD_BOT_TOKEN": "a bot's",
        }

    def asked(
        self,
        text: str,
        channel: str = "1",
        *,
        files: tuple[str, ...] = (),
        name: str = "ask",
        user: str = "9",
    ) -> tuple[str, dict[str, str], bytes]:
        """A person uses a command: the token of the interaction, and the headers and body of its request."""
        self.count += 1
        token = f"token-{self.count}"
        found = {
            str(number): {
                "id": str(number),
                "filename": each,
                "url": f"{self.url}/files/{each}",
                "size": len(self.files.get(each, "")),
                "content_type": "text/plain" if each.endswith(".txt") else "image/png",
            }
            for number, each in enumerate(files, 1)
        }
        interaction = {
            "id": str((round(time.time() * 1000) - EPOCH_MS) << SEQUENCE_BITS | self.count),
            "application_id": "4711",
            "type": 2,
            "token": token,
            "channel_id": channel,
            "member": {"user": {"id": user}},
            "data": {
                "name": name,
                "options": [{"name": "text", "type": 3, "value": text}],
                "resolved": {"attachments": found},
            },
        }
        body = json.dumps(interaction).encode()
        timestamp = str(int(time.time()))
        signature = self.key.sign(timestamp.encode() + body).hex()
        return (
            token,
            {
                "content-type": "application/json",
                "x-signature-ed25519": signature,
                "x-signature-timestamp": timestamp,
            },
            body,
        )

    def ask(self, endpoint: str, text: str, channel: str = "1", **more: Any) -> tuple[str, dict[str, Any]]:
        """The same, sent: the token, and what the bot says at once."""
        token, headers, body = self.asked(text, channel, **more)
        request = urllib.request.Request(endpoint, body, headers)  # noqa: S310
        with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310
            return token, json.load(answer)

    def texts(self, token: str) -> list[str]:
        """What was replied to an interaction, one edit after the other."""
        return [text for each, text in self.replies if each == token]

    def wait(self, count: int, patience_s: float = 60.0) -> None:
        """Until there are so many replies."""
        with self.moved:
            if not self.moved.wait_for(lambda: len(self.replies) >= count, patience_s):
                raise TimeoutError(f"{len(self.replies)} of {count} replies came")

    def take(self, path: str, document: Any) -> tuple[int, dict[str, Any]]:
        """A reply or a "typing" has come: what is answered."""
        with self.moved:
            if path.endswith("/typing"):
                self.typings += 1
            elif self.refusals:
                return self.refusals.pop(0)
            else:
                self.replies.append((path.split("/")[3], document["content"]))
            self.moved.notify_all()
            return 200, {}


@contextmanager
def stand_in() -> Iterator[StandIn]:
    """It listens on a port of its own."""
    discord = StandIn()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_taken(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length") or 0))
            status, told = discord.take(self.path, json.loads(body or b"null"))
            self.tell(status, json.dumps(told).encode())

        do_PATCH = do_POST = do_taken  # noqa: N815

        def do_GET(self) -> None:
            text = discord.files.get(self.path.rpartition("/")[2])
            self.tell(404 if text is None else 200, (text or "").encode())

        def tell(self, status: int, body: bytes) -> None:
            self.send_response(status)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
            pass

    class Server(ThreadingHTTPServer):
        def handle_error(self, request: Any, client_address: Any) -> None:
            """Who was killed in the middle is no news."""

    server = Server(("127.0.0.1", 0), Handler)
    discord.url = f"http://127.0.0.1:{server.server_address[1]}"
    serving = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    serving.start()
    try:
        yield discord
    finally:
        server.shutdown()
        server.server_close()
