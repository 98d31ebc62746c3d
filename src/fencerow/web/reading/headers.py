"""The headers of a request, each with its own bound. All functions take the values of all headers of one name.

What is wrong with a header that changes what is done is refused. What only helps (a preference, a trace, a correlation
id) is left out, as its standard has it. CR, LF and NUL come through in none.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from fencerow.web.errors import InvalidRequest, RequestTooLarge
from fencerow.web.settings import WebSettings

COUNT_MAX = 100
KEY_LENGTH_MAX = 256
CORRELATION_LENGTH_MAX = 128
TOKEN_LENGTH_MAX = 512
EVENT_ID_LENGTH_MAX = 64
PREFER_LENGTH_MAX = 2048
PREFERENCES_MAX = 32
WAIT_S_MAX = 24 * 3600.0

FORBIDDEN = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]")
STRUCTURED = re.compile(r'"((?:[ !#-\[\]-~]|\\["\\])*+)"', re.ASCII)
BARE = re.compile(r"""[!#-+\--~]++""", re.ASCII)  # visible, without quotes and commas
VISIBLE = re.compile(r"[!-~]++", re.ASCII)
BEARER = re.compile(r"[Bb][Ee][Aa][Rr][Ee][Rr] +([A-Za-z0-9\-._~+/]++=*)", re.ASCII)
PREFERENCE = re.compile(r'(?:[^",]|"(?:[^"\\]|\\.)*+")++', re.ASCII)
WAIT = re.compile(r'wait[ \t]*=[ \t]*("?)([0-9]{1,9})\1[ \t]*(?:;.*)?', re.ASCII | re.IGNORECASE)


class HeaderValues(dict[str, list[str]]):
    """The headers of one request by their names in lower case, each with its values in the order in which they came."""

    @staticmethod
    def of(raw: Iterable[tuple[bytes, bytes]]) -> HeaderValues:
        """As the server has them."""
        found = HeaderValues()
        for name, value in raw:
            found.setdefault(name.decode("latin-1").lower(), []).append(value.decode("latin-1"))
        return found

    def getlist(self, key: str) -> list[str]:
        """The values of this name."""
        return self.get(key, [])


def check_headers(raw: Iterable[tuple[bytes, bytes]], settings: WebSettings) -> None:
    """Refuse headers that are too many, too long, or hold what would break a line.

    Raises:
        RequestTooLarge: with the status 431.
        InvalidRequest: a control character.
    """
    pairs = list(raw)
    most = settings.web_headers_bytes_max
    if len(pairs) > COUNT_MAX or sum(len(name) + len(value) + 4 for name, value in pairs) > most:
        raise RequestTooLarge(
            f"the request has more than {COUNT_MAX} headers, or more than {most} bytes of them",
            "`web_headers_bytes_max` sets the limit of the bytes",
            "send fewer and shorter headers",
            status=431,
        )
    for name, value in pairs:
        if FORBIDDEN.search(name) or FORBIDDEN.search(value):
            raise _refused(
                f"the header {_shown(name.decode('latin-1'))} holds a control character", "remove it"
            )


def idempotency_key_of(values: Sequence[str]) -> str | None:
    """The key: `"…"` as the draft of the standard has it, or bare. None: the caller sent none.

    Raises:
        InvalidRequest: it came twice, is empty, or has more than 256 characters or invisible ones.
    """
    value = _only(values, "Idempotency-Key")
    if value is None:
        return None
    quoted = STRUCTURED.fullmatch(value)
    key = re.sub(r"\\(.)", r"\1", quoted[1]) if quoted else value
    if not 0 < len(key) <= KEY_LENGTH_MAX or not (quoted or BARE.fullmatch(value)) or key.isspace():
        raise _refused(
            f"the Idempotency-Key is {_shown(value)}",
            f'send 1 to {KEY_LENGTH_MAX} visible characters, as in `Idempotency-Key: "order-17"`',
        )
    return key


def wait_of(values: Sequence[str]) -> float:
    """For how many seconds `Prefer: wait=…` asks to wait; 0.0 if it does not. The first one counts (RFC 7240)."""
    together = ",".join(values)
    if len(together) > PREFER_LENGTH_MAX:
        return 0.0
    for preference in PREFERENCE.findall(together)[:PREFERENCES_MAX]:
        if found := WAIT.fullmatch(preference.strip(" \t")):
            return min(float(found[2]), WAIT_S_MAX)
    return 0.0


def correlation_of(values: Sequence[str]) -> str | None:
    """The caller's id of what this belongs to, if it is short and plain; None: make one."""
    if len(values) != 1 or len(values[0]) > CORRELATION_LENGTH_MAX or not VISIBLE.fullmatch(values[0]):
        return None
    return values[0]


def last_event_id_of(values: Sequence[str]) -> str | None:
    """Where a stream goes on. None: from its beginning.

    Raises:
        InvalidRequest: it came twice, or is nothing that we ever sent.
    """
    value = _only(values, "Last-Event-ID")
    if value and (len(value) > EVENT_ID_LENGTH_MAX or not VISIBLE.fullmatch(value)):
        raise _refused(f"the Last-Event-ID is {_shown(value)}", "send the last `id` of the stream, or none")
    return value or None


def bearer_of(values: Sequence[str]) -> str | None:
    """The token in `Authorization: Bearer …`; None if there is none of that form. It is repeated in no message.

    Raises:
        InvalidRequest: the header came twice: a proxy may have judged by the other one.
    """
    value = _only(values, "Authorization")
    found = BEARER.fullmatch(value) if value and len(value) <= TOKEN_LENGTH_MAX else None
    return found[1] if found else None


def _only(values: Sequence[str], name: str) -> str | None:
    if len(values) > 1:
        raise _refused(f"the header {name} came {len(values)} times", "send it once")
    return values[0].strip(" \t") if values else None


def _refused(what: str, fix: str) -> InvalidRequest:
    return InvalidRequest(what, "it would be read in two ways, or not at all", fix)


def _shown(value: str) -> str:
    return ascii(value if len(value) <= 60 else f"{value[:60]}…")
