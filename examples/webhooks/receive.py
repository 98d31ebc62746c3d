"""Receive Fencerow's webhooks with nothing but Python's standard library.

    WEBHOOK_SECRETS="whsec_…" python receive.py 8000

Give both secrets, with a blank between, while one is replaced. TLS is the business of what stands before it.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
import re
import sys
import time
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

TOLERANCE_S = 300
BODY_BYTES_MAX = 1024 * 1024
SECRET_BYTES_MIN = 24
ID = re.compile(r"[A-Za-z0-9_:=+/-]{1,256}")
TIMESTAMP = re.compile(r"0|[1-9][0-9]{0,11}")


def is_genuine(headers: Message, body: bytes, secrets: list[bytes], now_s: float) -> bool:
    """Whether exactly this body was signed with one of the secrets, not long ago."""
    message_id, timestamp, signatures = (
        one_of(headers, name) for name in ("webhook-id", "webhook-timestamp", "webhook-signature")
    )
    if not ID.fullmatch(message_id) or not TIMESTAMP.fullmatch(timestamp):
        return False
    if abs(now_s - int(timestamp)) > TOLERANCE_S:
        return False
    signed = f"{message_id}.{timestamp}.".encode() + body
    found = False
    for secret in secrets:
        expected = b"v1," + base64.b64encode(hmac.digest(secret, signed, hashlib.sha256))
        for signature in signatures.split(" ")[:16]:
            found |= hmac.compare_digest(expected, signature.encode("latin-1", "replace"))
    return found


def one_of(headers: Message, name: str) -> str:
    """The header's value; nothing if it comes twice, for then nobody knows which one counts."""
    values = headers.get_all(name, [])
    return values[0] if len(values) == 1 else ""


class Receiver(BaseHTTPRequestHandler):
    """One request: read its body as it came, verify it, answer soon, and work afterwards."""

    timeout = 10  # seconds of silence
    secrets: list[bytes]

    def do_POST(self) -> None:
        length = self.headers.get("content-length", "")
        if not re.fullmatch("[0-9]{1,7}", length) or int(length) > BODY_BYTES_MAX:
            self.answer(413)
            return
        body = self.rfile.read(int(length))
        if not is_genuine(self.headers, body, self.secrets, time.time()):
            self.answer(400)
            return
        # The same id comes again if this answer is lost: keep the ids that you have worked off, in the transaction
        # of the work itself, and answer 204 to those without doing it again.
        print("received", self.headers["webhook-id"], flush=True)
        self.answer(204)

    def answer(self, status: int) -> None:
        self.close_connection = True
        self.send_response(status)
        self.send_header("content-length", "0")
        self.send_header("connection", "close")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """The print above says enough."""


if __name__ == "__main__":
    Receiver.secrets = [
        base64.b64decode(text.removeprefix("whsec_") + "==") for text in os.environ["WEBHOOK_SECRETS"].split()
    ]
    if not Receiver.secrets or min(map(len, Receiver.secrets)) < SECRET_BYTES_MIN:
        sys.exit("WEBHOOK_SECRETS has something else than secrets")
    server = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Receiver)
    print(f"listening on {server.server_port}", flush=True)
    server.serve_forever()
