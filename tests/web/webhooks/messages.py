"""Webhooks as they come to a receiver: genuine ones, and every kind that is not."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from dataclasses import dataclass

from fencerow.web.webhooks.signing import WebhookSecret, signature_of, signed_headers

OLD, NEW, FOREIGN = (WebhookSecret(bytes([number]) * 32) for number in (1, 2, 3))
BODY = '{"job": "7", "say": "é€"}'.encode()
WITHIN_S, BEYOND_S = 200, 360  # of 300: machines may stand still for a minute
Headers = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Message:
    name: str
    headers: Headers
    body: bytes = BODY


def genuine(now_s: int) -> Iterator[Message]:
    """Signed with one of OLD and NEW, and of now."""
    usual = _signed(now_s)
    by_new = usual["webhook-signature"]
    by_old = _signed(now_s, secret=OLD)["webhook-signature"]
    foreign = _signed(now_s, secret=FOREIGN)["webhook-signature"]
    yield _message("usual", usual)
    yield _message("the old secret", usual | {"webhook-signature": by_old})
    yield _message("both", usual | {"webhook-signature": f"{by_old} {by_new}"})
    yield _message("another before it", usual | {"webhook-signature": f"{foreign} {by_new}"})
    yield _message("another behind it", usual | {"webhook-signature": f"{by_new} {foreign}"})
    yield _message("other versions", usual | {"webhook-signature": f"v1a,AAAA v2,{by_new[3:]} what {by_new}"})
    yield _message("two blanks", usual | {"webhook-signature": f"v0,A  {by_new}"})
    yield _message("names in capitals", {name.upper(): value for name, value in usual.items()})
    yield _message("an id of all letters", _signed(now_s, "Az09_:=+/-"))
    yield _message("the longest id", _signed(now_s, "x" * 256))
    yield _message("some minutes old", _signed(now_s - WITHIN_S))
    yield _message("some minutes ahead", _signed(now_s + WITHIN_S))
    for body in (b"", b"\x00\xff\xfe", b"a\r\nb\r\n", b"no JSON", bytes(range(256)) * 40):
        yield _message(f"the body {body[:9]!r}", _signed(now_s, body=body), body)


def forged(now_s: int) -> Iterator[Message]:
    """None of these may be believed."""
    usual = _signed(now_s)
    yield _message("nothing", {})
    for name, value in usual.items():
        rest = {other: usual[other] for other in usual if other != name}
        yield _message(f"without {name}", rest)
        yield _message(f"{name} is empty", usual | {name: ""})
        yield Message(f"{name} twice", (*usual.items(), (name, value)))
        yield Message(f"{name} twice, another first", ((name, "x"), *usual.items()))
    for body in (b"", BODY[:-1], BODY + b" ", b" " + BODY, BODY.replace(b"7", b"8"), BODY.replace(b" ", b"")):
        yield _message(f"altered to {body!r}", usual, body)
    yield from _ids_and_times(now_s, usual)
    for number, text in enumerate(_signatures(now_s, usual["webhook-signature"])):
        yield _message(f"signature {number}: {text[:60]}", usual | {"webhook-signature": text})


def unheard_of(now_s: int) -> Iterator[Message]:
    """Forged too, but no client of HTTP sends them."""
    usual = _signed(now_s)
    for name, value in usual.items():
        for text in (
            f"{value}\n",
            f"\t{value}",
            f"{value}\r\nx: y",
            f"{value}\x00",
            f"{value}\ud800",
            f"{value}€",
        ):
            yield _message(f"{name} is {text[-6:]!a}", usual | {name: text})
    digits = str.maketrans("0123456789", "٠١٢٣٤٥٦٧٨٩")
    yield _message("other digits", usual | {"webhook-timestamp": str(now_s).translate(digits)})
    yield _message("more digits than Python reads", usual | {"webhook-timestamp": "9" * 5_000})
    yield _message("an endless signature", usual | {"webhook-signature": "v1,A " * 1_000_000})


def _ids_and_times(now_s: int, usual: dict[str, str]) -> Iterator[Message]:
    yield _message("another id", usual | {"webhook-id": "msg_2"})
    yield _message("six minutes old", _signed(now_s - BEYOND_S))
    yield _message("six minutes ahead", _signed(now_s + BEYOND_S))
    yield _message("of 1970", _signed(0))
    yield _message("a second later", usual | {"webhook-timestamp": f"{now_s + 1}"})
    for text in (f"0{now_s}", f"{now_s}.0", f"+{now_s}", f"-{now_s}", "now", "1e9", "0x65000000", "9" * 13):
        yield _message(f"the timestamp {text}", usual | {"webhook-timestamp": text})
        yield _message(f"the timestamp {text}, signed", _signed_as("msg_1", text))
    for identity in ("a.b", "", "a b", "x" * 257, "é", "a,b", "a\tb"):
        yield _message(f"the id {identity[:9]!r}, signed", _signed_as(identity, str(now_s)))
    # Three texts that are one when they are signed: what was `a` at `then` is taken for `a.then` of now.
    then = now_s - 7 * 86_400
    moved = _signed(then, "a", body=f"{now_s}.x".encode()) | {
        "webhook-id": f"a.{then}",
        "webhook-timestamp": str(now_s),
    }
    yield _message("moved full stops", moved, b"x")


def _signatures(now_s: int, right: str) -> Iterator[str]:
    text = right.removeprefix("v1,")
    raw = base64.b64decode(text)
    other_bits = text[:-2] + chr(ord(text[-2]) + 1) + "="  # which decode to the same bytes
    yield from (
        _signed(now_s, secret=FOREIGN)["webhook-signature"],
        _signed(now_s, body=b"{}")["webhook-signature"],
    )
    yield from (
        text,
        "v1",
        "v1,",
        "v1, ",
        f"v1;{text}",
        f"v1={text}",
        f"V1,{text}",
        f"v2,{text}",
        f"v1a,{text}",
        f"v11,{text}",
    )
    yield from (
        f"v1,{raw.hex()}",
        f"v1,{text[:-1]}",
        f"v1,{text}=",
        f"v1,{text[:-4]}",
        f"v1,A{text}",
        f"v1,{other_bits}",
    )
    yield from (
        f"v1,{text},",
        f"v1,,{text}",
        f"v1,A,{right}",
        f'"{right}"',
        f"x{right}",
        f"{right};",
        f"v1,{text.swapcase()}",
    )
    yield from (
        f"v0,A\t{right}",
        "v1,A " * 16 + right,
        "v1," + base64.b64encode(bytes(32)).decode(),
        "é",
        "=" * 44,
    )


def _signed(
    timestamp_s: int, identity: str = "msg_1", *, body: bytes = BODY, secret: WebhookSecret = NEW
) -> dict[str, str]:
    return signed_headers(identity, timestamp_s, body, [secret])


def _signed_as(identity: str, timestamp: str) -> dict[str, str]:
    """Signed rightly, whatever the texts are."""
    try:
        signature = "v1," + signature_of(NEW.key, identity, timestamp, BODY)
    except UnicodeEncodeError:
        signature = "v1,A"
    return {"webhook-id": identity, "webhook-timestamp": timestamp, "webhook-signature": signature}


def _message(name: str, headers: dict[str, str], body: bytes = BODY) -> Message:
    return Message(name, tuple(headers.items()), body)
