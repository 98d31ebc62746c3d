"""`fencerow serve` at its door: which address it takes, and with which certificate."""

from __future__ import annotations

import asyncio
import re
import ssl
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import httpx
import pytest
from click.testing import CliRunner

from fencerow import App
from fencerow.cli.serve import serve
from fencerow.core.errors import ConfigError
from fencerow.web.gateway.asgi import Gateway
from fencerow.web.gateway.certificate import context_of
from fencerow.web.gateway.server import Server
from fencerow.web.settings import WebSettings
from tests.kit.pace import PATIENCE_S
from tests.web.gateway.certificates import Pair, made
from tests.web.gateway.serving import serving_on, until_ended


async def test_a_caller_who_verifies_the_certificate_is_served(lite_app: App, tmp_path: Path) -> None:
    pair, other = made(tmp_path, "gateway"), made(tmp_path, "other")
    server = Server(Gateway(lite_app), WebSettings(), tls=context_of(pair.cert, pair.key))
    async with lite_app, serving_on(server) as served, asyncio.timeout(PATIENCE_S):
        for trusted, answers in ((pair, True), (other, False)):
            context = ssl.create_default_context(cafile=str(trusted.cert))
            async with httpx.AsyncClient(verify=context, timeout=PATIENCE_S) as http:
                asked = http.get(f"https://127.0.0.1:{served.port}/livez")
                if answers:
                    assert (await asked).json() == {"status": "ok"}
                else:
                    with pytest.raises(httpx.ConnectError, match="CERTIFICATE_VERIFY_FAILED"):
                        await asked


async def test_tls_that_is_begun_and_never_ends_is_bounded(lite_app: App, tmp_path: Path) -> None:
    pair = made(tmp_path, "gateway")
    settings = replace(WebSettings(), web_headers_timeout_s=0.2)
    server = Server(Gateway(lite_app), settings, tls=context_of(pair.cert, pair.key))
    async with lite_app, serving_on(server) as served:
        reader, writer = await served.raw(b"\x16\x03")

        await until_ended(reader)
        writer.close()


def _missing(folder: Path) -> Pair:
    return Pair(made(folder, "a").cert, folder / "nothing.key")


def _folder(folder: Path) -> Pair:
    return Pair(folder, made(folder, "a").key)


def _mixed(folder: Path) -> Pair:
    return Pair(made(folder, "a").cert, made(folder, "b").key)


def _swapped(folder: Path) -> Pair:
    pair = made(folder, "a")
    return Pair(pair.key, pair.cert)


def _cut(folder: Path) -> Pair:
    pair = made(folder, "a")
    pair.key.write_bytes(pair.key.read_bytes()[:60])
    return pair


BAD: dict[str, tuple[Callable[[Path], Pair], str]] = {
    "missing": (_missing, r"^--tls-key .*nothing.key cannot be read; No such file"),
    "a folder": (_folder, r"^--tls-cert .* cannot be read; Is a directory"),
    "of another key": (_mixed, r"^--tls-key .*b.key is not the key of --tls-cert .*a.pem"),
    "swapped": (_swapped, r"cannot be used"),
    "cut off": (_cut, r"cannot be used"),
    "encrypted": (lambda folder: made(folder, "a", locked=True), r"^--tls-key is encrypted"),
    "expired": (lambda folder: made(folder, "a", days=-1), r"trusted by no caller; it has expired"),
    "of tomorrow": (lambda folder: made(folder, "a", days=31), r"trusted by no caller; it is not valid yet"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_certificate_that_no_caller_would_verify_is_refused_at_the_door(tmp_path: Path, case: str) -> None:
    make, expected = BAD[case]
    pair = make(tmp_path)

    with pytest.raises(ConfigError) as caught:
        context_of(pair.cert, pair.key)

    error = caught.value
    assert error.fix

    assert re.search(expected, f"{error.what}; {error.why}"), f"{error.what}; {error.why}"


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--bind", "0.0.0.0:8080"], "would serve plain HTTP to a network"),
        (["--bind", "[::]:8080"], "would serve plain HTTP to a network"),
        (["--bind", "192.0.2.1:8080", "--tls-cert", "a.pem"], "go together"),
        (["--tls-key", "a.key"], "go together"),
        # These pass this door, and are told of the next thing that lacks.
        (["--bind", "0.0.0.0:8080", "--behind-proxy"], "no application was named"),
        (["--bind", "127.0.0.2:8080"], "no application was named"),
        (["--bind", "[::1]:8080"], "no application was named"),
    ],
)
def test_tokens_are_not_sent_through_a_network_in_plain_text(
    monkeypatch: pytest.MonkeyPatch, words: list[str], expected: str
) -> None:
    monkeypatch.delenv("FENCEROW_APP", raising=False)

    told = CliRunner().invoke(serve, words)

    assert isinstance(told.exception, ConfigError), told.output
    assert expected in told.exception.what + told.exception.why
