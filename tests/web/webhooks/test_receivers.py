"""The receivers of the examples believe what `verify_webhook` believes, whatever language they are in."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path

import pytest

from fencerow.errors import WebhookRefused
from fencerow.web import verify_webhook
from tests.house.tree import ROOT
from tests.kit.pace import PATIENCE_S
from tests.web.webhooks.messages import NEW, OLD, Message, forged, genuine
from tests.web.webhooks.test_verifying import at, headers_of

FOLDER = ROOT / "examples" / "webhooks"
BELIEVED, REFUSED, TOO_LARGE = 204, 400, 413
LARGE = 1024 * 1024 + 1
LANGUAGES = ("py", "mjs", "go")


@contextmanager
def running(language: str, folder: Path) -> Iterator[int]:
    """The receiver of that language, and its port."""
    environment = os.environ | {"WEBHOOK_SECRETS": f"{NEW.text} {OLD.text}", "GOCACHE": str(folder)}
    with subprocess.Popen(
        [*_command(language, folder), "0"], env=environment, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        try:
            yield int(process.stdout.readline().removeprefix("listening on "))
        finally:
            process.terminate()
            process.stdout.read()


def _command(language: str, folder: Path) -> list[str]:
    if language == "py":
        return [sys.executable, str(FOLDER / "receive.py")]
    name = {"mjs": "node", "go": "go"}[language]
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"no {name} on this machine")
    if language == "mjs":
        return [found, str(FOLDER / "receive.mjs")]
    program = folder / "receive"  # built first: `go run` would leave its child behind
    subprocess.run(
        [found, "build", "-o", program, FOLDER / "receive.go"],
        env=os.environ | {"GOCACHE": str(folder)},
        check=True,
    )
    return [str(program)]


def sent(port: int, message: Message, *, length: int | None = None) -> int:
    """The status of the answer. `length`: what the header says, where that is not what is sent."""
    told = len(message.body) if length is None else length
    connection = HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)
    try:
        connection.putrequest("POST", "/hook")
        for name, value in (*message.headers, ("content-length", str(told))):
            connection.putheader(name, value.encode("latin-1"))
        connection.endheaders(message.body)
        return connection.getresponse().status
    finally:
        connection.close()


def believed(message: Message, now_s: float) -> int:
    try:
        verify_webhook(headers_of(message), message.body, [NEW, OLD], now=at(now_s))
    except WebhookRefused:
        return REFUSED
    return BELIEVED


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_receiver_believes_genuine_messages_only(language: str, tmp_path: Path) -> None:
    with running(language, tmp_path) as port:
        now_s = int(time.time())
        messages = [*genuine(now_s), *forged(now_s)]
        answers = {message.name: sent(port, message) for message in messages}
        # The one in Python answers by the header and hangs up. A body that is still on its way then breaks the pipe,
        # and the answer may be lost with it.
        body = b"" if language == "py" else bytes(LARGE)
        large = sent(port, Message("large", (), body), length=LARGE)

    assert len(answers) == len(messages)
    assert answers == {message.name: believed(message, now_s) for message in messages}
    assert set(answers.values()) == {BELIEVED, REFUSED}
    assert large == TOO_LARGE
