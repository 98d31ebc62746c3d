"""A receiver of webhooks on loopback that answers as it is told, and an app whose workers deliver to it."""

from __future__ import annotations

import base64
import hmac
import http.server
import json
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from fencerow import App, Config, Fail
from fencerow.testing import drain
from fencerow.web.webhooks.declared import WebhookTo
from fencerow.web.webhooks.fan_out import deliver_webhooks
from fencerow.web.webhooks.job import DELAYS_S, JITTER
from fencerow.web.webhooks.settings import allowed_of
from fencerow.web.webhooks.verbs import Webhooks

Answer = tuple[int, dict[str, str]]
OK: Answer = (200, {})


@dataclass
class Got:
    """One POST as it came."""

    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def id(self) -> str:
        return self.headers["webhook-id"]

    @property
    def document(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.body)
        return found


@dataclass
class Receiver:
    """Keeps what came, and answers what `answer` says; None: it closes the connection without an answer."""

    url: str = ""
    got: list[Got] = field(default_factory=list)
    answer: Callable[[Got], Answer | None] = lambda _got: OK
    came: threading.Condition = field(default_factory=threading.Condition)
    free: threading.Event = field(default_factory=threading.Event)

    def take(self, got: Got) -> Answer | None:
        with self.came:
            self.got.append(got)
            self.came.notify_all()
        return self.answer(got)

    def hold(self) -> None:
        """Answer nothing until it is `free`: who waits runs out of time."""
        self.free.wait()

    def ids(self) -> list[str]:
        return [each.id for each in self.got]


@contextmanager
def receiving() -> Iterator[Receiver]:
    receiver = Receiver()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            headers = {name.lower(): value for name, value in self.headers.items()}
            answer = receiver.take(Got(self.path, headers, body))
            if answer is None:
                self.close_connection = True
                return
            self.send_response(answer[0])
            for name, value in answer[1].items():
                self.send_header(name, value)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (the name that it has there)
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        receiver.url = f"http://127.0.0.1:{server.server_address[1]}/hooks"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield receiver
        finally:
            receiver.free.set()
            server.shutdown()
            thread.join()


def app_at(url: str, receiver_url: str, *, endpoints: Sequence[WebhookTo] = (), **more: Any) -> App:
    """An app with jobs that end in each way, whose workers deliver there."""
    app = App(url, config=Config(webhook_allow=receiver_url.removesuffix("/hooks"), poll_max_s=0.2), **more)

    @app.job(queue="mail", name="send", attempts_max=1)
    async def send(to: str) -> str:
        if to == "nobody":
            raise Fail("nobody is there")
        return f"sent to {to}"

    deliver_webhooks(app, endpoints=endpoints)
    return app


def hooks_of(app: App) -> Webhooks:
    return Webhooks(app.client, allowed_of(app.config))


def is_signed(got: Got, *secrets: str) -> bool:
    """Whether it is signed by each of these secrets, computed here by the specification."""
    text = f"{got.id}.{got.headers['webhook-timestamp']}.".encode() + got.body
    keys = [base64.b64decode(each.removeprefix("whsec_")) for each in secrets]
    made = [base64.b64encode(hmac.digest(key, text, "sha256")).decode() for key in keys]
    return got.headers["webhook-signature"].split() == [f"v1,{each}" for each in made]


def end(app: App, *to: str) -> list[str]:
    """Jobs that have ended, and were told as far as the receiver took it: their ids. "nobody" fails."""
    ids = [app.jobs["send"].using(tags=["eu"], metadata={"order": 7}).submit(each).id for each in to]
    drain(app)
    return ids


def after(failures: int) -> float:
    """Later than any retry after so many failures."""
    return DELAYS_S[failures - 1] * (1 + JITTER) + 1
