"""What each scheme believes: the messages that its makers have published, and no other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from fencerow.errors import (
    DeclarationError,
    InboundRefused,
    InboundUnfit,
    InvalidRequest,
    SecretMissing,
    WrongCall,
)
from fencerow.web import GitHub, StandardWebhooks, Stripe
from fencerow.web.inbound.scheme import Came, Scheme
from fencerow.web.reading.headers import HeaderValues
from fencerow.web.webhooks.errors import WebhookRefusal
from fencerow.web.webhooks.pairs import KeyPair
from fencerow.web.webhooks.signing import signed_headers
from tests.web.inbound.senders import GITHUB, STANDARD, STRIPE, Pairs, github, standard, stripe
from tests.web.webhooks.test_signing import (
    PUBLISHED_BODY,
    PUBLISHED_ID,
    PUBLISHED_SECRET,
    PUBLISHED_SIGNATURE,
)

NOW_S = 1_700_000_000
BODY = b'{"id": "evt_1", "type": "paid", "amount": 7}'
OLD = {
    "hub": "the former one of GitHub",
    "stripe": "whsec_the_former_one",
    "standard": "whsec_" + "QUJE" * 10,
}
SCHEMES: dict[str, tuple[Scheme, str]] = {
    "hub": (GitHub("NEW", "OLD"), GITHUB),
    "stripe": (Stripe("NEW", "OLD"), STRIPE),
    "standard": (StandardWebhooks("NEW", "OLD"), STANDARD),
}


def came(pairs: Pairs, body: bytes = BODY, now_s: float = NOW_S) -> Came:
    raw = [(name.encode(), value.encode("latin-1")) for name, value in pairs]
    return Came(HeaderValues.of(raw), body, now_s)


def signed(name: str, secret: str, body: bytes = BODY, at: float = NOW_S) -> Pairs:
    if name == "hub":
        return github(body, secret)
    return (stripe if name == "stripe" else standard)(body, secret, at=at)


def read(name: str, message: Came, *, former: bool = False) -> Any:
    scheme, secret = SCHEMES[name]
    environment = {"NEW": secret} | ({"OLD": OLD[name]} if former else {})
    return scheme.read(scheme.keys(environment), message)


# Stripe has published no message. This one was signed by `openssl dgst -sha256 -hmac whsec_of_a_test`, over
# "1700000000." and the body.
STRIPES = b'{"id":"evt_7","type":"invoice.paid","data":{"object":{"amount":1999,"currency":"eur"}}}'
STRIPES_SIGNATURE = "t=1700000000,v0=0,v1=bf6296ac4301a61305eba87f845d15a40b0fc80f6d53a85e62348b3895bd0f38"


# What the makers of the schemes have published, but for Stripe.
def test_the_published_messages_pass() -> None:
    told = Stripe("S").read([b"whsec_of_a_test"], came([("stripe-signature", STRIPES_SIGNATURE)], STRIPES))
    assert (told.id, told.kind, told.signed_s) == ("evt_7", "invoice.paid", NOW_S)

    hello = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"
    with pytest.raises(InvalidRequest):  # genuine, and no JSON
        GitHub("S").read(
            [b"It's a Secret to Everybody"],
            came([("X-Hub-Signature-256", hello), ("X-GitHub-Delivery", "1")], b"Hello, World!"),
        )
    with pytest.raises(InboundRefused):
        GitHub("S").read([b"It's a Secret"], came([("X-Hub-Signature-256", hello)], b"Hello, World!"))

    scheme = StandardWebhooks("S")
    told = scheme.read(
        scheme.keys({"S": PUBLISHED_SECRET}),
        came(
            [
                ("webhook-id", PUBLISHED_ID),
                ("webhook-timestamp", "1614265330"),
                ("webhook-signature", PUBLISHED_SIGNATURE),
            ],
            PUBLISHED_BODY,
            1614265330,
        ),
    )
    assert told.id == PUBLISHED_ID


@pytest.mark.parametrize("name", SCHEMES)
def test_a_secret_is_good_while_it_is_set_and_no_longer(name: str) -> None:
    with_old = signed(name, OLD[name])

    assert read(name, came(with_old), former=True).kind
    assert read(name, came(signed(name, SCHEMES[name][1])), former=True).kind
    with pytest.raises(InboundRefused) as refused:
        read(name, came(with_old))
    assert refused.value.reason is WebhookRefusal.SIGNATURE


def changed(pairs: Pairs, header: str, change: Callable[[str], str]) -> Pairs:
    return [(name, change(value) if name.lower() == header else value) for name, value in pairs]


HEADERS = {"hub": "x-hub-signature-256", "stripe": "stripe-signature", "standard": "webhook-signature"}


@pytest.mark.parametrize("name", SCHEMES)
def test_no_other_message_passes(name: str) -> None:
    right, header = signed(name, SCHEMES[name][1]), HEADERS[name]
    other = signed(next(each for each in SCHEMES if each != name), GITHUB if name != "hub" else STANDARD)
    forged = {
        "altered": (right, BODY.replace(b"7", b"8"), WebhookRefusal.SIGNATURE),
        "longer": (right, BODY + b" ", WebhookRefusal.SIGNATURE),
        "cut": (right, BODY[:-1], WebhookRefusal.SIGNATURE),
        "another secret": (signed(name, OLD[name]), BODY, WebhookRefusal.SIGNATURE),
        "no signature": ([each for each in right if each[0].lower() != header], BODY, WebhookRefusal.HEADERS),
        "nothing": ([], BODY, WebhookRefusal.HEADERS),
        "two signatures": ([*right, (header, dict_of(right)[header])], BODY, WebhookRefusal.HEADERS),
        "another scheme": (other, BODY, WebhookRefusal.HEADERS),
        "no value": (changed(right, header, lambda _: ""), BODY, WebhookRefusal.HEADERS),
        "not ASCII": (changed(right, header, lambda value: value + "ü"), BODY, WebhookRefusal.HEADERS),
        "another version": (changed(right, header, lambda value: value.replace("1", "2", 1)), BODY, None),
        "in capitals": (changed(right, header, str.upper), BODY, None),
        "endless": (changed(right, header, lambda value: f"{value}," * 500), BODY, None),
    }
    if name != "hub":
        forged |= {
            "too old": (signed(name, SCHEMES[name][1], at=NOW_S - 301), BODY, WebhookRefusal.TOO_OLD),
            "from the future": (signed(name, SCHEMES[name][1], at=NOW_S + 301), BODY, WebhookRefusal.TOO_NEW),
        }

    for kind, (pairs, body, reason) in forged.items():
        with pytest.raises(InboundRefused) as refused:
            read(name, came(pairs, body))
        assert reason is None or refused.value.reason is reason, kind
    assert read(name, came(right)).payload["amount"] == 7


def dict_of(pairs: Pairs) -> dict[str, str]:
    return {name.lower(): value for name, value in pairs}


def test_what_is_genuine_and_has_no_id_is_told_apart() -> None:
    for body in (b"[1]", b'{"type": "paid"}', b'{"id": 7}', b'{"id": "a b"}'):
        with pytest.raises(InboundUnfit):
            read("stripe", came(stripe(body, at=NOW_S), body))
    with pytest.raises(InboundUnfit):
        read("hub", came(github(BODY, delivery="a b")))
    with pytest.raises(InboundRefused, match="x-github-delivery"):
        read("hub", came(github(BODY)[1:]))


def test_a_body_may_be_the_id_where_headers_are_not_signed() -> None:
    by_body = GitHub("NEW", id_from="body")
    keys = by_body.keys({"NEW": GITHUB})

    ids = {by_body.read(keys, came(github(BODY, delivery=each))).id for each in ("1", "2")}
    other = by_body.read(keys, came(github(b"{}")[1:], b"{}")).id

    assert len(ids | {other}) == 2


def test_a_key_pair_of_the_standard_is_believed_too() -> None:
    pair, scheme = KeyPair.new(), StandardWebhooks("S")
    headers = list(signed_headers("msg_1", NOW_S, BODY, [pair]).items())

    assert scheme.read(scheme.keys({"S": pair.public.text}), came(headers)).id == "msg_1"


@pytest.mark.parametrize("name", SCHEMES)
def test_secrets_come_from_the_environment_and_are_shown_nowhere(name: str) -> None:
    scheme, secret = SCHEMES[name]

    for environment in ({}, {"NEW": " "}, {"NEW": "short"}):
        with pytest.raises(SecretMissing, match="NEW") as missing:
            scheme.keys(environment)
        assert "short" not in str(missing.value).replace("shorter", "")
    assert secret not in repr(scheme) + repr(vars(scheme))
    with pytest.raises(DeclarationError) as told:
        type(scheme)(secret + " as it is")
    assert secret not in str(told.value)
    with pytest.raises(WrongCall, match=rf"{type(scheme).__name__}\(\) was given 'tolerance'"):
        type(scheme)("NEW", tolerance=3)  # type: ignore[call-arg]
    assert len(scheme.keys({"NEW": f" {secret}\n", "OLD": OLD[name]})) == 2
