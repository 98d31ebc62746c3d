"""Who takes part, each in a process of its own: workers, the endpoint, which several processes serve, the gateway."""

from __future__ import annotations

import asyncio
import http.server
import json
import logging
import os
import socket
import socketserver
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any
from uuid import uuid4

from fencerow import App
from fencerow.config import Config
from fencerow.core.model.backoff import Backoff
from fencerow.web.gateway.asgi import Gateway
from fencerow.web.gateway.server import Server
from fencerow.web.settings import WebSettings
from fencerow.web.tokens.scope import Grant
from fencerow.web.webhooks.signing import WebhookSecret
from fencerow.web.webhooks.verifying import verify_webhook
from fencerow.web.worked.declared import worked_over_http
from tests.kit.pace import slower

SLOTS = 6
SECRET = WebhookSecret(b"c" * 32).text
SECRET_ENV = "FENCEROW_CAMPAIGN_KEY"
BUDGET: Any = {
    "attempts_max": 1000,
    "crashes_max": 1000,
    "snoozes_max": 1000,
    "timeout_s": 60,
    "process": False,
}
SILENT_S = slower(4.0)
QUICK = Backoff(base_s=0.1, cap_s=0.5)


@dataclass(frozen=True)
class Place:
    """Where everything is."""

    url: str  # the database
    endpoint: int  # its port
    gateway: int
    log: Path  # what endpoints did and were told, a line each
    seed: int


def app_at(place: Place) -> App:
    """An app whose one job is worked by the endpoint."""
    os.environ[SECRET_ENV] = SECRET
    logging.disable(logging.CRITICAL)  # thousands of attempts fail
    config = Config(
        lease_s=slower(2.0), renew_s=slower(0.3), poll_max_s=0.2, poll_min_s=0.01,
        webhook_allow=f"http://127.0.0.1:{place.endpoint}", web_rate_per_second=0.0, web_requests_caller_max=200,
    )  # fmt: skip
    app = App(place.url, config=config)

    @app.job(queue="work", backoff=QUICK, **BUDGET)
    @worked_over_http(
        app,
        f"http://127.0.0.1:{place.endpoint}/jobs",
        secret_env=SECRET_ENV,
        callbacks=f"http://127.0.0.1:{place.gateway}",
        reply_s=slower(10.0),
        heartbeat_s=SILENT_S,
    )
    def work(number: int) -> dict[str, Any]:
        raise NotImplementedError

    return app


def run_worker(place: Place) -> None:
    """Run a worker until this process is killed."""
    asyncio.run(app_at(place).worker(slots=SLOTS).run())


def run_gateway(place: Place) -> None:
    """Serve the callbacks until this process is killed."""

    async def nobody(_request: Any) -> Grant | None:
        return None

    async def serve() -> None:
        app = app_at(place)
        server = Server(Gateway(app, authorize=nobody), WebSettings.of(app.config))
        await server.run([socket.create_server(("127.0.0.1", place.gateway))])

    asyncio.run(serve())


# --- the endpoint -------------------------------------------------------------------------------------


def run_endpoint(place: Place) -> None:
    """Serve attempts until this process is killed, beside others on the same port."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            verify_webhook(dict(self.headers.items()), body, SECRET)
            status, document = Work(place, json.loads(body)["data"]).replied()
            text = json.dumps(document).encode()
            self.send_response(status)
            self.send_header("content-length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (the name that it has there)
            pass

    class Several(socketserver.ThreadingMixIn, http.server.HTTPServer):
        allow_reuse_port = True
        daemon_threads = True
        request_queue_size = 128

        def handle_error(self, request: Any, client_address: Any) -> None:
            pass  # whoever asked was killed

    Several(("127.0.0.1", place.endpoint), Handler).serve_forever(poll_interval=0.05)


class Work:
    """What the endpoint does with one attempt: by chance one of the ways in which endpoints behave, good and bad."""

    def __init__(self, place: Place, data: dict[str, Any]) -> None:
        self._place = place
        self._data = data
        self._chance = Random(f"{place.seed} {data['args']['number']} {data['attempt']}")

    def replied(self) -> tuple[int, Any]:
        ways: list[Callable[[], tuple[int, Any]]] = [
            *3 * [self.in_place], *3 * [self.later], self.at_once, self.both, self.late, self.refuses, self.fails_later,
        ]  # fmt: skip
        return self._chance.choice(ways)()

    def in_place(self) -> tuple[int, Any]:
        return 200, self._result("reply")

    def later(self) -> tuple[int, Any]:
        """It answers soon, and doubles some answers."""
        self._soon(
            self._chance.uniform(0.0, 0.1),
            self._succeed,
            *self._chance.choice([(), (self._succeed,), (self._fail,)]),
        )
        return 202, {}

    def at_once(self) -> tuple[int, Any]:
        """It answers before it replies."""
        self._succeed()
        return 202, {}

    def both(self) -> tuple[int, Any]:
        """It answers in both ways."""
        self._succeed()
        return self.in_place()

    def late(self) -> tuple[int, Any]:
        """It is silent for too long."""
        self._soon(1.5 * SILENT_S, self._succeed)
        return 202, {}

    def refuses(self) -> tuple[int, Any]:
        return 503, {"retry_after_s": 0.1}

    def fails_later(self) -> tuple[int, Any]:
        self._soon(0.05, self._fail, self._succeed)
        return 202, {}

    def _soon(self, after_s: float, *sayings: Callable[[], None]) -> None:
        def say() -> None:
            time.sleep(after_s)
            for each in sayings:
                each()

        threading.Thread(target=say, daemon=True).start()

    def _succeed(self) -> None:
        self._say("succeed", {"result": (result := self._result("callback"))}, result["token"])

    def _fail(self) -> None:
        self._say("fail", {"message": "by chance", "retry_after_s": 0.1}, "")

    def _result(self, way: str) -> dict[str, Any]:
        token = str(uuid4())
        self._note("made", way, token)
        return {"number": self._data["args"]["number"], "token": token}

    def _say(self, verb: str, document: Any, token: str) -> None:
        callback = self._data["callback"]
        headers = {"authorization": f"Bearer {callback['token']}", "content-type": "application/json"}
        body = json.dumps(document).encode()
        request = urllib.request.Request(f"{callback['url']}/{verb}", body, headers, method="POST")  # noqa: S310
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310
                self._note("told", verb, token, answer.status, "")
        except urllib.error.HTTPError as error:
            self._note("told", verb, token, error.code, json.load(error).get("reason", ""))
        except OSError:
            self._note("told", verb, token, 0, "")

    def _note(self, *what: Any) -> None:
        line = json.dumps([self._data["job"], self._data["attempt"], *what]) + "\n"
        log = os.open(self._place.log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(log, line.encode())  # one write: lines of several processes do not mix
        os.close(log)
