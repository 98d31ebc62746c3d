"""What stands before a page and a press: headers of every answer, and proof that a form is one of ours.

A form must come from our own origin by what the browser says (`Origin`, `Sec-Fetch-Site`), and bring the token that its
page was given. The token is made of a cookie that no other site can read or set where there is TLS.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import secrets
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final
from urllib.parse import parse_qsl, urlsplit

from starlette.requests import Request
from starlette.responses import Response

from fencerow.web.errors import ForeignRequest, InvalidRequest, RequestTooLarge, RequestTooSlow
from fencerow.web.reading.body import Gone

POLICY: Final = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "connect-src 'self'",
        "frame-ancestors 'none'",
        "base-uri 'none'",
        "form-action 'self'",
    )
)
ALWAYS: Mapping[str, str] = MappingProxyType(
    {
        "content-security-policy": POLICY,
        "x-content-type-options": "nosniff",
        "referrer-policy": "no-referrer",
        "cross-origin-opener-policy": "same-origin",
        "cross-origin-resource-policy": "same-origin",
        "permissions-policy": "camera=(), geolocation=(), microphone=()",
    }
)
FORM_TYPE = "application/x-www-form-urlencoded"
FORM_BYTES_MAX = 64 * 1024
FIELDS_MAX = 1_000


class Cookies:
    """Our cookies. Over TLS their names bind them to this host (`__Host-`) and nobody else can set them."""

    def __init__(self, *, secured: bool | None) -> None:
        self._secured = secured

    def is_secure(self, request: Request) -> bool:
        """Whether the browser has TLS: as the operator said, else by the request."""
        return request.url.scheme == "https" if self._secured is None else self._secured

    def name(self, request: Request, name: str) -> str:
        """The name of a cookie of ours."""
        return f"__Host-fencerow_{name}" if self.is_secure(request) else f"fencerow_{name}"

    def get(self, request: Request, name: str) -> str | None:
        """What the browser sent."""
        return request.cookies.get(self.name(request, name))

    def set(
        self, request: Request, response: Response, name: str, value: str, *, kept_s: int | None = None
    ) -> None:
        """Let the browser keep it, for `kept_s` seconds, else until it is closed. No script can read it."""
        response.set_cookie(
            self.name(request, name),
            value,
            max_age=kept_s,
            path="/",
            secure=self.is_secure(request),
            httponly=True,
            samesite="strict",
        )

    def remove(self, request: Request, response: Response, name: str) -> None:
        """Let the browser forget it."""
        self.set(request, response, name, "", kept_s=0)


def new_seed() -> str:
    """What tokens of forms are made of; it goes into a cookie."""
    return secrets.token_urlsafe(24)


def form_token(seed: str) -> str:
    """What the forms of a page send along. It does not tell the cookie."""
    return hashlib.sha256(b"fencerow form\0" + seed.encode()).hexdigest()


def check_origin(request: Request) -> None:
    """Refuse what another site sends.

    Raises:
        ForeignRequest: the browser says so, or does not say that it is ours.
    """
    site = request.headers.get("sec-fetch-site")
    origin = request.headers.get("origin")
    host = request.headers.get("host", "").lower()
    if site is not None and site != "same-origin":
        raise _foreign(f"the browser calls it {ascii(site)[:40]}")
    # A page that sends no referrer sends `null` here. Whether the page is ours, the browser alone says then.
    is_told = site is not None and origin == "null"
    if origin is not None and not is_told and (urlsplit(origin).netloc.lower() != host or not host):
        raise _foreign(f"its Origin is {ascii(origin)[:100]}")
    if site is None and origin is None:
        raise _foreign("it has neither Origin nor Sec-Fetch-Site")


def check_token(form: Mapping[str, str], seed: str | None) -> None:
    """Refuse a form that no page of ours gave to this browser.

    Raises:
        ForeignRequest: its token is missing, or another one.
    """
    given = form.get("form", "")
    if seed is None or not hmac.compare_digest(given.encode(), form_token(seed).encode()):
        raise _foreign("its token is not that of a page which this browser has")


def _foreign(why: str) -> ForeignRequest:
    return ForeignRequest(
        "the form does not come from a page of this dashboard", why, "open the page again and press there"
    )


async def form_of(request: Request, *, timeout_s: float) -> Mapping[str, str]:
    """The fields of a form, each once.

    Raises:
        InvalidRequest: it is no form, or has a field twice. RequestTooLarge, RequestTooSlow: it is no form of ours.
    """
    media = request.headers.get("content-type", "").split(";")[0].strip().lower()
    if media != FORM_TYPE:
        raise InvalidRequest(
            "no form was sent", f"its type is {ascii(media)[:60]}", "press the button on the page"
        )
    try:
        async with asyncio.timeout(timeout_s):
            raw = await _read(request)
    except TimeoutError:
        raise RequestTooSlow(
            f"the form did not come within {timeout_s:g} s", "the connection is slow", "press again"
        ) from None
    try:
        pairs = parse_qsl(
            raw.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=FIELDS_MAX
        )
    except ValueError:
        raise InvalidRequest("the form cannot be read", "it is no text in UTF-8", "press again") from None
    form = {name: value.strip() for name, value in pairs}
    if len(form) != len(pairs) or "\0" in raw.decode("ascii") or any("\0" in each for each in form.values()):
        raise InvalidRequest(
            "the form has a field twice, or a NUL", "no page of ours sends that", "press again"
        )
    return form


async def _read(request: Request) -> bytes:
    found = bytearray()
    while True:
        message = await request.receive()
        if message["type"] != "http.request":
            raise Gone
        found += message.get("body", b"")
        if len(found) > FORM_BYTES_MAX:
            raise RequestTooLarge(
                f"the form has more than {FORM_BYTES_MAX} bytes", "no page of ours sends that", "send less"
            )
        if not message.get("more_body", False):
            return bytes(found)
