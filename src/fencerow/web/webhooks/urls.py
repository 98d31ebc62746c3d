"""The URL of a webhook, taken apart once: what is checked is what is connected.

Few URLs are understood, and those in one way only. All that two parsers might read differently is refused: what stands
before an `@`, a backslash, letters outside of ASCII, percent signs in the host, numbers that are short for an address.
"""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address
from typing import Final

from fencerow.db.text import shown
from fencerow.web.webhooks.errors import WebhookUrlRefused

URL_LENGTH_MAX: Final = 2048
HOST_LENGTH_MAX: Final = 253
URL: Final = re.compile(
    r"(?P<scheme>https?)://"
    r"(?:\[(?P<six>[0-9A-Fa-f:.]+)\]|(?P<host>[A-Za-z0-9._-]+))"
    r"(?::(?P<port>[1-9][0-9]{0,4}))?"
    r"(?P<path>(?:[/?](?:[A-Za-z0-9._~:/?@!$&'()*+,;=-]|%[0-9A-Fa-f]{2})*)?)"
)
LABEL: Final = re.compile(r"[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?")
NUMBER: Final = re.compile(
    r"[0-9]+|0x[0-9a-f]*"
)  # as the last label: the whole is read as an address by some


@dataclass(frozen=True, slots=True)
class Target:
    """Where a POST goes to."""

    http: bool
    host: str  # in small letters; an IPv6 address without its brackets
    port: int
    path: str

    @property
    def address(self) -> IPv4Address | IPv6Address | None:
        """The host, if it is an address itself."""
        try:
            return ipaddress.ip_address(self.host)
        except ValueError:
            return None

    @property
    def scheme(self) -> str:
        return "http" if self.http else "https"

    @property
    def authority(self) -> str:
        """The value of the header Host."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == (80 if self.http else 443) else f"{host}:{self.port}"


def parsed(url: str) -> Target:
    """The target of a URL.

    Raises:
        WebhookUrlRefused: it is no URL that webhooks can be sent to.
    """
    found = URL.fullmatch(url) if len(url) <= URL_LENGTH_MAX else None
    if found is None:
        raise _refused(url)
    http = found["scheme"] == "http"
    port = int(found["port"]) if found["port"] else (80 if http else 443)
    try:
        host = str(IPv6Address(found["six"])) if found["six"] else host_of(found["host"])
    except ValueError as error:
        raise _refused(url) from error
    if port > 65535:
        raise _refused(url)
    path = found["path"]
    return Target(http, host, port, path if path.startswith("/") else f"/{path}")


def host_of(text: str) -> str:
    """A name in small letters, or an address of IPv4 in its one form.

    Raises:
        ValueError: it is neither.
    """
    host = text.lower()
    labels = host.split(".")
    if len(host) > HOST_LENGTH_MAX or not all(len(one) <= 63 and LABEL.fullmatch(one) for one in labels):
        raise ValueError("no name of a host")
    if NUMBER.fullmatch(labels[-1]):
        return str(IPv4Address(host))  # four numbers without leading zeros, or it raises
    return host


def _refused(url: str) -> WebhookUrlRefused:
    return WebhookUrlRefused(
        f"the URL of a webhook is {_shown(url)}",
        "https://host, perhaps with a port and a path, is expected: in ASCII, without a password, a fragment, or a dot "
        "at the end of the host; an address in its usual form",
        "write a name of another script as it is registered (xn--…), and keep secrets out of the URL",
    )


def _shown(url: str) -> str:
    """Without what may be a password."""
    return "one with an @ (not shown)" if "@" in url else shown(url, 200)
