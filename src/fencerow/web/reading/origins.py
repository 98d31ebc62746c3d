"""Where a request comes from and under which name it asks: what a proxy says is believed of none but our own."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network

from fencerow.core.errors import ConfigError
from fencerow.web.errors import InvalidRequest
from fencerow.web.settings import WebSettings

HOPS_MAX = 32
ADDRESS_LENGTH_MAX = 45
UNIX = "unix"
ANY = "*"
HOST = re.compile(r"(\[[0-9a-f:.]{2,45}\]|[a-z0-9_](?:[a-z0-9._\-]{0,252}))(?::[0-9]{1,5})?", re.ASCII)
WITH_PORT = re.compile(r"(?:\[([0-9A-Fa-f:.]{2,45})\]|([0-9.]{7,15}))(?::[0-9]{1,5})?", re.ASCII)
NAME = re.compile(r"(?:\*\.)?[a-z0-9_][a-z0-9._\-]{0,252}|\[[0-9a-f:.]{2,45}\]", re.ASCII)

Address = IPv4Address | IPv6Address


@dataclass(frozen=True, slots=True)
class Proxies:
    """Whom we believe. `unix`: a peer without an address, too."""

    unix: bool
    networks: tuple[IPv4Network | IPv6Network, ...]

    def have(self, address: Address | None) -> bool:
        return self.unix if address is None else any(address in each for each in self.networks)


def check_settings(settings: WebSettings) -> None:
    """Refuse names and networks that cannot be understood, before the first request comes.

    Raises:
        ConfigError: which one, and what is expected.
    """
    _hosts(settings.web_hosts)
    _proxies(settings.web_proxies)


def check_host(values: Sequence[str], settings: WebSettings) -> None:
    """Refuse a request that asks under a name that is not ours.

    A foreign page whose name suddenly leads to our address (DNS rebinding) has its own name in `Host`. It can have
    neither an address nor `localhost` there.

    Raises:
        InvalidRequest: 421 for a name that is not ours; 400 if there is none, or several.
    """
    found = HOST.fullmatch(values[0].strip(" \t").lower()) if len(values) == 1 else None
    if found is None:
        raise InvalidRequest(
            f"the Host is {ascii(', '.join(values))[:80]}",
            "one name is expected",
            "send the name that you ask",
        )
    host = found[1].rstrip(".")
    if not _is_ours(host, _hosts(settings.web_hosts)):
        raise InvalidRequest(
            f"the Host is {ascii(host)[:80]}",
            "it is none of the names in `web_hosts`",
            "ask under one of them, or have the operator add it",
            status=421,
        )


def _is_ours(host: str, names: frozenset[str] | None) -> bool:
    if names is None:
        return host == "localhost" or host.endswith(".localhost") or _address(host.strip("[]")) is not None
    parents = (f"*.{rest}" for rest in _below(host))
    return ANY in names or host in names or any(each in names for each in parents)


def _below(host: str) -> list[str]:
    labels = host.split(".")
    return [".".join(labels[at:]) for at in range(1, len(labels))]


def address_of(
    client: Sequence[object] | None, forwarded: Sequence[str], settings: WebSettings
) -> str | None:
    """The address of the caller. None: it came through a socket file.

    Where our peer is one of `web_proxies`, it is the last address in `X-Forwarded-For` that is not: what stands before
    that one, anybody may have written. Where a proxy says what is no address, the caller is the proxy.
    """
    proxies = _proxies(settings.web_proxies)
    peer = _address(str(client[0])) if client else None
    if not proxies.have(peer):
        return str(peer) if peer else None
    hops = ",".join(forwarded).rsplit(",", HOPS_MAX)[-HOPS_MAX:]
    for hop in reversed(hops):
        address = _address(_without_port(hop.strip(" \t")))
        if address is None:
            break
        peer = address
        if not proxies.have(address):
            break
    return str(peer) if peer else None


def _address(value: str) -> Address | None:
    return None if "%" in value or len(value) > ADDRESS_LENGTH_MAX else _read(value)


@lru_cache(maxsize=1024)
def _read(value: str) -> Address | None:
    try:
        found = ipaddress.ip_address(value)
    except ValueError:
        return None
    return (found.ipv4_mapped or found) if found.version == 6 else found


def _without_port(hop: str) -> str:
    """`192.0.2.1:80` and `[2001:db8::1]:80` are addresses, too."""
    found = WITH_PORT.fullmatch(hop)
    return found[1] or found[2] if found else hop


@lru_cache(maxsize=8)
def _proxies(setting: str | None) -> Proxies:
    parts = _parts(setting or "")
    try:
        return Proxies(UNIX in parts, tuple(ipaddress.ip_network(each) for each in parts if each != UNIX))
    except ValueError:
        found = f"web_proxies is {ascii(setting)[:80]}"
    raise ConfigError(
        found, "networks with commas between, such as 10.0.0.0/8,fd00::/8 or unix", "correct it"
    )


@lru_cache(maxsize=8)
def _hosts(setting: str | None) -> frozenset[str] | None:
    if setting is None:
        return None
    names = frozenset(each.lower().rstrip(".") for each in _parts(setting))
    if not names or any(each != ANY and not NAME.fullmatch(each) for each in names):
        raise ConfigError(
            f"web_hosts is {ascii(setting)[:80]}",
            "names without ports, with commas between, such as api.example.com,*.example.org",
            "correct it",
        )
    return names


def _parts(setting: str) -> list[str]:
    return [each.strip() for each in setting.split(",") if each.strip()]
