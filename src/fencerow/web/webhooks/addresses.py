"""Which addresses a webhook may be sent to: a table of our own, and what an operator allows beyond it.

`ipaddress.is_private` and `is_global` are not asked: their answers differ between releases of Python, and some call
NAT64 of 127.0.0.1, 6to4 and multicast global.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from typing import Final

from fencerow.core.errors import ConfigError
from fencerow.db.text import shown
from fencerow.web.webhooks.errors import WebhookUrlRefused
from fencerow.web.webhooks.urls import Target, host_of, parsed

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

PORTS: Final = frozenset({443, 8443})


def _networks(*texts: str) -> tuple[Network, ...]:
    return tuple(ipaddress.ip_network(text) for text in texts)


# Nobody can allow these: a machine's own data and credentials at its cloud, and what is no single machine.
NEVER: Final = _networks(
    "0.0.0.0/8",  # connects to this machine
    "100.100.100.200/32",  # metadata of Alibaba Cloud
    "168.63.129.16/32",  # of Azure: a public address that answers only from within
    "169.254.0.0/16",  # link-local: metadata of most clouds
    "192.0.0.192/32",  # of Oracle Cloud
    "224.0.0.0/4",  # multicast
    "240.0.0.0/4",  # reserved, and broadcast
    "::/128",
    "fd00:ec2::/32",  # metadata of AWS
    "fd20:ce::/32",  # of Google Cloud
    "fe80::/10",  # link-local
    "fec0::/10",  # site-local of old
    "ff00::/8",  # multicast
)
PRIVATE: Final = _networks(
    "10.0.0.0/8",
    "100.64.0.0/10",  # behind a carrier's NAT
    "127.0.0.0/8",
    "172.16.0.0/12",
    "192.0.0.0/24",
    "192.0.2.0/24",  # documentation, as 198.51.100 and 203.0.113
    "192.88.99.0/24",  # relays of 6to4
    "192.168.0.0/16",
    "198.18.0.0/15",  # benchmarks
    "198.51.100.0/24",
    "203.0.113.0/24",
    "2001::/23",  # Teredo, ORCHID and other protocols
    "2001:db8::/32",  # documentation
    "3fff::/20",  # documentation
)
# All of IPv6 beyond is private (::1, ::/96, 64:ff9b:1::/48, fc00::/7 …), unless an IPv4 address lies within.
PUBLIC_V6: Final = IPv6Network("2000::/3")
MAPPED: Final = IPv6Network("::ffff:0:0/96")
NAT64: Final = IPv6Network("64:ff9b::/96")
SIX_TO_FOUR: Final = IPv6Network("2002::/16")
ISATAP: Final = (
    0x0000_5EFE,
    0x0200_5EFE,
)  # the third quarter of such an address; the last one is an IPv4 address

RULE: Final = re.compile(
    r"(?:(?P<scheme>https?)://)?"
    r"(?:\[(?P<six>[0-9A-Fa-f:./]+)\]|(?P<bare>[0-9A-Fa-f]*(?::[0-9A-Fa-f]*){2,}(?:/[0-9]+)?)|(?P<host>[^:\[\]]+))"
    r"(?::(?P<port>[1-9][0-9]{0,4}))?"
)


@dataclass(frozen=True, slots=True)
class AllowRule:
    """One line of the allow-list: a name or a network, with a port of its own or those of all, and perhaps `http`."""

    where: str | Network
    port: int | None = None
    http: bool = False

    def covers(self, target: Target, address: Address | None) -> bool:
        """Whether it allows this; without an address, whether it may allow it once the name is resolved."""
        if target.http and not self.http:
            return False
        usual = (80,) if target.http else PORTS
        if target.port not in (usual if self.port is None else (self.port,)):
            return False
        if isinstance(self.where, str):
            return self.where == target.host
        return address is None or (address.version == self.where.version and address in self.where)


@dataclass(frozen=True, slots=True)
class Allowed:
    """Where webhooks may go: to public addresses by https on `ports`, and to whatever one of the rules allows."""

    rules: tuple[AllowRule, ...] = ()
    ports: frozenset[int] = PORTS

    @classmethod
    def parsed(cls, texts: Sequence[str]) -> Allowed:
        """From lines `[http://]name-or-network[:port]`: `10.1.0.0/16`, `hooks.intra:8080`, `http://[::1]:9000`.

        A rule without a port is for 443 and 8443, one without `http://` for https.

        Raises:
            ConfigError: one of them cannot be read.
        """
        return cls(tuple(_rule(text) for text in texts))

    def may_be(self, target: Target) -> bool:
        """Whether its scheme and port can be right, before its name is resolved."""
        address = target.address
        if address is not None:
            return self.permits(target, (address,))
        return self._is_usual(target) or any(rule.covers(target, None) for rule in self.rules)

    def permits(self, target: Target, addresses: Iterable[Address]) -> bool:
        """Whether each of these addresses of the target may be connected. One that may not refuses all of them."""
        found = tuple(addresses)
        return bool(found) and all(self._permits(target, address) for address in found)

    def _permits(self, target: Target, address: Address) -> bool:
        alike = tuple(_alike(address))
        if any(_within(one, NEVER) for one in alike) or getattr(address, "scope_id", None):
            return False
        if self._is_usual(target) and all(_is_public(one) for one in alike):
            return True
        return any(rule.covers(target, address) for rule in self.rules)

    def _is_usual(self, target: Target) -> bool:
        return not target.http and target.port in self.ports


def _alike(address: Address) -> Iterator[Address]:
    """The address, and those of IPv4 where a packet to it may come out."""
    yield address
    if isinstance(address, IPv4Address):
        return
    number = int(address)
    if address in MAPPED or address in NAT64 or (number >> 32 & 0xFFFF_FFFF) in ISATAP:
        yield IPv4Address(number & 0xFFFF_FFFF)
    elif address in SIX_TO_FOUR:
        yield IPv4Address(number >> 80 & 0xFFFF_FFFF)


def _is_public(address: Address) -> bool:
    if isinstance(address, IPv6Address) and (address in MAPPED or address in NAT64):
        return True  # the IPv4 address within decides
    return not _within(address, PRIVATE) and (address.version == 4 or address in PUBLIC_V6)


def _within(address: Address, networks: Sequence[Network]) -> bool:
    return any(address.version == network.version and address in network for network in networks)


def target_of(url: str, allow: Allowed) -> Target:
    """The target of a URL, if webhooks may be sent there as far as it says itself. A name is resolved at each POST.

    Raises:
        WebhookUrlRefused: it is malformed, or leads where webhooks may not go.
    """
    target = parsed(url)
    if not allow.may_be(target):
        raise WebhookUrlRefused(
            f"no webhook may be sent to {target.scheme}://{target.authority}",
            "public addresses by https on ports 443 and 8443 are allowed, and what the setting webhook_allow has",
            "use another URL, or let who runs Fencerow allow this one",
        )
    return target


def _rule(text: str) -> AllowRule:
    found = RULE.fullmatch(text)
    port = int(found["port"]) if found and found["port"] else None
    try:
        if found is None or (port or 0) > 65535:
            raise ValueError("not of the form of a rule")
        where = _place(found["six"] or found["bare"] or found["host"])
    except ValueError as error:
        raise ConfigError(
            f"webhooks are allowed to {shown(text)}",
            "a name or a network (bits beyond the prefix are 0) is expected, with `http://` and a port if need be",
            "write it as 10.1.0.0/16, hooks.intra:8080, or http://[fd12::/64]:9000",
        ) from error
    if not isinstance(where, str) and any(_covers(never, where) for never in NEVER):
        raise ConfigError(
            f"webhooks are allowed to {shown(text)}",
            "there are data and credentials of this machine, or no single machine: no webhook ever goes there",
            "take the line out",
        )
    return AllowRule(where, port, found["scheme"] == "http")


def _place(text: str) -> str | Network:
    is_network = "/" in text or ":" in text or text.replace(".", "").isdigit()
    return ipaddress.ip_network(text) if is_network else host_of(text)


def _covers(wide: Network, narrow: Network) -> bool:
    return wide.version == narrow.version and narrow[0] in wide and narrow[-1] in wide
