"""Webhooks signed with a key pair: as published, checked by who cannot make them, and by no library that is missing."""

from __future__ import annotations

import base64
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from fencerow import App
from fencerow.core.errors import InvalidInput, MissingExtra
from fencerow.errors import WebhookRefused
from fencerow.testing import drain
from fencerow.testing.clock import DatabaseClock
from fencerow.web import verify_webhook
from fencerow.web.webhooks.endpoint import OVERLAP_S
from fencerow.web.webhooks.pairs import KeyPair, PublicKey, signer_of
from fencerow.web.webhooks.signing import WebhookSecret, signed_headers
from tests.house.tree import ROOT
from tests.web.webhooks.stage import Receiver, end, hooks_of
from tests.web.webhooks.test_signing import PUBLISHED_BODY, PUBLISHED_ID
from tests.web.webhooks.test_verifying import at

# The pair and the signature of this message that servers and libraries of Standard Webhooks have in their tests.
PAIR = "whsk_6Xb/dCcHpPea21PS1N9VY/NZW723CEc77N4rJCubMbfVKIDij2HKpMKkioLlX0dRqSKJp4AJ6p9lMicMFs6Kvg=="
PUBLIC = "whpk_1SiA4o9hyqTCpIqC5V9HUakiiaeACeqfZTInDBbOir4="
SIGNATURE = "v1a,hnO3f9T8Ytu9HwrXslvumlUpqtNVqkhqw/enGzPCXe5BdqzCInXqYXFymVJaA7AZdpXwVLPo3mNl8EM+m7TBAg=="
SIGNED_S = 1614265330
PAGE = (ROOT / "docs" / "guide" / "webhooks-receiving.md").read_text("utf-8")


def test_the_published_message_is_signed_and_verified_as_published() -> None:
    headers = signed_headers(PUBLISHED_ID, SIGNED_S, PUBLISHED_BODY, [KeyPair.parsed(PAIR)])

    assert headers["webhook-signature"] == SIGNATURE
    assert KeyPair.parsed(PAIR).public.text == PUBLIC and KeyPair.parsed(PAIR).text == PAIR
    verify_webhook(headers, PUBLISHED_BODY, PUBLIC, now=at(SIGNED_S))
    verify_webhook(headers, PUBLISHED_BODY, [WebhookSecret.new(), PublicKey.parsed(PUBLIC)], now=at(SIGNED_S))


@pytest.mark.parametrize(
    "signature",
    [
        SIGNATURE.replace("v1a", "v1"), SIGNATURE.replace("v1a", "v1b"), SIGNATURE[:-4], SIGNATURE.rstrip("="),
        SIGNATURE.replace("Ag==", "Ah=="), SIGNATURE.replace("hnO3", "hnO4"), "v1a,", "v1a,AA==", f"{SIGNATURE}!",
        f"v1a,{base64.b64encode(bytes(64)).decode()}",
    ],
)  # fmt: skip
def test_any_other_signature_is_refused(signature: str) -> None:
    headers = {
        "webhook-id": PUBLISHED_ID,
        "webhook-timestamp": str(SIGNED_S),
        "webhook-signature": signature,
    }

    with pytest.raises(WebhookRefused) as refused:
        verify_webhook(headers, PUBLISHED_BODY, PUBLIC, now=at(SIGNED_S))
    assert refused.value.reason == "signature"


def test_altered_messages_and_other_keys_are_refused() -> None:
    headers = signed_headers(PUBLISHED_ID, SIGNED_S, PUBLISHED_BODY, [KeyPair.parsed(PAIR)])
    for more, body, key in (
        ({}, PUBLISHED_BODY + b" ", PUBLIC),
        ({"webhook-id": "msg_other"}, PUBLISHED_BODY, PUBLIC),
        ({"webhook-timestamp": str(SIGNED_S + 1)}, PUBLISHED_BODY, PUBLIC),
        ({}, PUBLISHED_BODY, KeyPair.new().public.text),
        ({}, PUBLISHED_BODY, WebhookSecret.new().text),
    ):
        with pytest.raises(WebhookRefused):
            verify_webhook({**headers, **more}, body, key, now=at(SIGNED_S))


@pytest.mark.parametrize(
    "text", ["whsk_", PAIR[:-8], f"{PAIR} ", PAIR.replace("X0dR", "X0dS"), PUBLIC, "whsk_é"]
)
def test_what_is_no_key_pair_is_refused_and_not_shown(text: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        signer_of(text)

    assert len(text) < 12 or text[5:15] not in str(refused.value)
    assert "6Xb" not in repr(KeyPair.parsed(PAIR)) + str(KeyPair.parsed(PAIR))
    with pytest.raises(InvalidInput):
        PublicKey.parsed(PAIR)


def test_an_endpoint_with_a_key_pair_tells_its_public_key_alone(
    app: App, receiver: Receiver, moved: DatabaseClock
) -> None:
    hooks = hooks_of(app)
    first = hooks.add("shop", receiver.url, asymmetric=True).secret
    second = hooks.rotate("shop")
    end(app, "ada")

    (got,) = receiver.got
    assert hooks.secrets("shop") == [second, first]
    assert {each[:5] for each in (first, second)} == {"whpk_"}
    for key in (first, second):
        verify_webhook(got.headers, got.body, key)
    moved.advance(OVERLAP_S + 1)
    assert hooks.rotate("shop", asymmetric=False).startswith("whsec_")


def test_where_the_library_is_missing_a_key_pair_is_refused_and_webhooks_wait_without_an_attempt(
    app: App, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    hooks = hooks_of(app)
    hooks.add("shop", receiver.url, asymmetric=True)
    app.jobs["send"].submit("ada")
    monkeypatch.setitem(sys.modules, "cryptography.hazmat.primitives.asymmetric.ed25519", None)

    drain(app)

    for verb in (lambda: hooks.add("other", receiver.url, asymmetric=True), lambda: hooks.rotate("shop")):
        with pytest.raises(MissingExtra, match=r"fencerow\[seal\]"):
            verb()
    (delivery,) = hooks.deliveries()
    assert (delivery.state, delivery.attempts, receiver.got) == ("pending", 0, [])
    assert app.client.get(delivery.job_id).failures == 0
    assert [each.name for each in hooks.known()] == ["shop"]


def _block(language: str) -> str:
    found = re.search(rf"^```{language}\n(.+?)^```", PAGE, re.MULTILINE | re.DOTALL)
    assert found is not None
    return found[1].replace("whpk_…", PUBLIC)


def _asks(form: str) -> str:
    texts = [
        SIGNATURE,
        f"v1,x {SIGNATURE}",
        SIGNATURE.replace("hnO3", "hnO4"),
        SIGNATURE.replace("v1a", "v1"),
        "",
    ]
    return "\n".join(form.replace("$", text) for text in texts)


SAID = ["true", "true", "false", "false", "false"]


def test_the_page_s_javascript_checks_as_we_do(tmp_path: Path) -> None:
    if (node := shutil.which("node")) is None:
        pytest.skip("no node on this machine")
    body = PUBLISHED_BODY.decode()
    ask = f"console.log(isSigned('{PUBLISHED_ID}', '{SIGNED_S}', Buffer.from('{body}'), '$'));"
    (tmp_path / "check.mjs").write_text(_block("js") + _asks(ask))

    said = subprocess.run([node, tmp_path / "check.mjs"], capture_output=True, text=True, check=True)

    assert said.stdout.split() == SAID


@pytest.mark.prove
def test_the_page_s_go_checks_as_we_do(tmp_path: Path) -> None:
    if (go := shutil.which("go")) is None:
        pytest.skip("no go on this machine")
    ask = f'fmt.Println(isSigned("{PUBLISHED_ID}", "{SIGNED_S}", []byte(`{PUBLISHED_BODY.decode()}`), "$"))'
    program = f'package main\n\nimport "fmt"\n{_block("go")}\nfunc main() {{\n{_asks(ask)}\n}}\n'
    (tmp_path / "check.go").write_text(program)

    said = subprocess.run(
        [go, "run", tmp_path / "check.go"],
        capture_output=True, text=True, check=True, env={"GOCACHE": str(tmp_path), "PATH": "/usr/bin:/bin"},
    )  # fmt: skip

    assert said.stdout.split() == SAID
