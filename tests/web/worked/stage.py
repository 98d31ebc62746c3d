"""An endpoint on loopback that works jobs as it is told, in a thread; and an app whose jobs it works."""

from __future__ import annotations

import asyncio
import http.server
import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from fencerow import App, Config
from fencerow.web.webhooks.signing import WebhookSecret
from fencerow.web.webhooks.verifying import verify_webhook
from fencerow.web.worked.declared import worked_over_http

SECRET = WebhookSecret(b"r" * 32).text
SECRET_ENV = "FENCEROW_TEST_RENDER_KEY"
GATEWAY = "http://127.0.0.1"
OURS = ("answer_s", "heartbeat_s", "reply_s", "keeps_slot", "reply_bytes_max", "cancel_url")


@dataclass
class Reply:
    """What the endpoint replies. `body`: None leaves the connection without a reply."""

    status: int = 200
    body: bytes | None = b"null"
    headers: Mapping[str, str] = field(default_factory=dict)


def says(value: Any, status: int = 200, **headers: str) -> Reply:
    """A reply with a JSON body."""
    named = {name.replace("_", "-"): text for name, text in headers.items()}
    return Reply(status, json.dumps(value).encode(), named)


LATER = says({}, 202)
NO_REPLY = Reply(body=None)
TILL_LEFT = Reply(body=None)  # and it waits until whoever asks has left


@dataclass
class Request:
    """One attempt as it came, verified."""

    headers: Mapping[str, str]
    document: dict[str, Any]

    @property
    def data(self) -> dict[str, Any]:
        found: dict[str, Any] = self.document["data"]
        return found

    @property
    def token(self) -> str:
        return str(self.data["callback"]["token"])

    @property
    def path(self) -> str:
        """Below which the gateway takes what the endpoint says later."""
        return str(self.data["callback"]["url"]).removeprefix(GATEWAY)


@dataclass
class Endpoint:
    """Keeps what came, and replies what `reply` says, one after the other; the last counts for all that follow."""

    url: str = ""
    got: list[Request] = field(default_factory=list)
    reply: Callable[[Request], Reply] = lambda _request: Reply()

    free: threading.Event = field(default_factory=threading.Event)
    left: threading.Event = field(default_factory=threading.Event)

    def hold(self, _request: Request) -> Reply:
        """Reply nothing until it is `free`: who waits runs out of time."""
        self.free.wait()
        return NO_REPLY

    def replies(self, *replies: Reply) -> None:
        left = list(replies or [Reply()])
        self.reply = lambda _request: left.pop(0) if len(left) > 1 else left[0]


@contextmanager
def endpoint_serving() -> Iterator[Endpoint]:
    endpoint = Endpoint()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            headers = {name.lower(): value for name, value in self.headers.items()}
            verify_webhook(headers, body, SECRET)
            request = Request(headers, json.loads(body))
            endpoint.got.append(request)
            reply = endpoint.reply(request)
            if reply is TILL_LEFT:
                self.rfile.read(1)  # comes to its end when the worker hangs up
                endpoint.left.set()
            if reply.body is None:
                self.close_connection = True
                return
            self.send_response(reply.status)
            for name, value in reply.headers.items():
                self.send_header(name, value)
            if "content-length" not in reply.headers:
                self.send_header("content-length", str(len(reply.body)))
            self.end_headers()
            self.wfile.write(reply.body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (the name that it has there)
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        endpoint.url = f"http://127.0.0.1:{server.server_address[1]}/jobs"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield endpoint
        finally:
            server.shutdown()
            thread.join()


async def until(found: Callable[[], Any]) -> None:
    """Wait until a look finds something."""
    async with asyncio.timeout(60):
        while not found():
            await asyncio.sleep(0.01)


def config_for(endpoint: Endpoint, **more: Any) -> Config:
    return Config(webhook_allow=endpoint.url.removesuffix("/jobs"), poll_max_s=0.2, **more)


def render_job(app: App, endpoint: Endpoint, *, later: bool = False, **options: Any) -> Any:
    """The job `render`; with `later` its endpoint may answer by the callback."""
    ours = {name: options.pop(name) for name in OURS if name in options}
    worked = worked_over_http(
        app, endpoint.url, secret_env=SECRET_ENV, callbacks=GATEWAY if later else None, **ours
    )

    def render(document: str, pages: int = 1) -> dict[str, Any]:
        raise NotImplementedError

    return app.job(queue="render", **options)(worked(render))
