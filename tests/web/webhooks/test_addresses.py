"""Where webhooks may go, and that they go nowhere else: over a thousand ways to lead one astray, and a trap."""

from __future__ import annotations

import asyncio
import itertools
import socket
from collections.abc import AsyncIterator, Iterator, Sequence
from ipaddress import ip_address
from urllib.parse import urlsplit

import pytest

from fencerow.core.errors import ConfigError
from fencerow.web.webhooks.addresses import PORTS, Allowed, target_of
from fencerow.web.webhooks.errors import FailedBy, PostFailed, WebhookUrlRefused
from fencerow.web.webhooks.posting import post
from fencerow.web.webhooks.urls import Target, parsed
from tests.kit.pace import PATIENCE_S
from tests.web.webhooks.places import (
    FORBIDDEN_V4,
    FORBIDDEN_V6,
    NEVER_V4,
    NEVER_V6,
    PUBLIC,
    PUBLIC_ADDRESSES,
    answers,
    urls,
    within_v6,
)

CASES_MIN = 400


class Trap:
    """Listens at 127.0.0.1 and ::1, and counts who comes."""

    def __init__(self) -> None:
        self.port = 0
        self.caught = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.caught += 1
        writer.close()

    @property
    def allow(self) -> Allowed:
        """As by default, but for the port."""
        return Allowed(ports=PORTS | {self.port})


@pytest.fixture
async def trap() -> AsyncIterator[Trap]:
    it = Trap()
    servers = [await asyncio.start_server(it.serve, "127.0.0.1", 0)]
    it.port = servers[0].sockets[0].getsockname()[1]
    try:
        servers.append(await asyncio.start_server(it.serve, "::1", it.port))
    except OSError:
        pass  # no IPv6 here, or somebody else has this port there
    yield it
    for server in servers:
        server.close()
        await server.wait_closed()


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The addresses that a connection was asked for; none leaves this machine."""
    asked: list[str] = []
    really = asyncio.open_connection

    async def open_connection(
        host: str, port: int, **options: object
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        asked.append(host)
        if not ip_address(host).is_loopback:
            raise ConnectionRefusedError
        return await really(host, port)  # in plain: what reaches the trap has reached it

    monkeypatch.setattr(asyncio, "open_connection", open_connection)
    return asked


async def led(trap: Trap, url: str, answer: Sequence[str] = ("127.0.0.1",)) -> FailedBy:
    with pytest.raises(PostFailed) as failed:
        await post(
            url, b"{}", {}, timeout_s=PATIENCE_S, allow=trap.allow, resolve=lambda host, port: list(answer)
        )
    return failed.value.kind


async def test_nothing_leads_a_webhook_into_the_trap(trap: Trap, opened: list[str]) -> None:
    kinds = [await led(trap, url) for url in urls(trap.port)]
    kinds += [await led(trap, f"https://hooks.test:{trap.port}/", answer) for answer in answers()]

    assert len(kinds) >= CASES_MIN
    assert set(kinds) == {FailedBy.REFUSED_ADDRESS}
    assert (opened, trap.caught) == ([], 0)


async def test_the_trap_catches_who_is_not_checked(
    trap: Trap, opened: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Allowed, "permits", lambda *_: True)

    kinds = [
        await led(trap, f"https://{host}:{trap.port}/") for host in ("127.0.0.1", "localhost", "hooks.test")
    ]

    assert set(kinds) == {FailedBy.RESET}
    assert (len(opened), trap.caught) == (3, 3)


async def test_a_name_that_is_rebound_leads_to_what_was_checked(trap: Trap, opened: list[str]) -> None:
    said = itertools.chain([PUBLIC], itertools.repeat("127.0.0.1"))

    with pytest.raises(PostFailed) as failed:
        await post(
            f"https://hooks.test:{trap.port}/",
            b"{}",
            {},
            timeout_s=PATIENCE_S,
            allow=trap.allow,
            resolve=lambda host, port: [next(said)],
        )

    assert (failed.value.kind, opened, trap.caught) == (FailedBy.CONNECT, [PUBLIC], 0)


async def test_what_the_system_reads_as_an_address_is_never_asked_of_it(
    trap: Trap, opened: list[str]
) -> None:
    """`getaddrinfo` makes 127.0.0.1 of all these."""
    for host in ("2130706433", "0x7f.1", "0177.0.0.1", "127.1", "0x7f000001"):
        assert socket.getaddrinfo(host, 443, type=socket.SOCK_STREAM)[0][4][0] == "127.0.0.1"
        with pytest.raises(PostFailed) as failed:
            await post(f"https://{host}/", b"", {}, timeout_s=PATIENCE_S, allow=trap.allow)
        assert failed.value.kind is FailedBy.REFUSED_ADDRESS


HTTPS = Target(False, "hooks.test", 443, "/")


@pytest.mark.parametrize("address", PUBLIC_ADDRESSES)
def test_public_addresses_are_permitted(address: str) -> None:
    assert Allowed().permits(HTTPS, [ip_address(address)])


def _everything() -> Iterator[str]:
    yield from FORBIDDEN_V6
    for address in FORBIDDEN_V4:
        yield from (address, *within_v6(address).values())


def test_nothing_else_is_permitted_nor_is_no_address() -> None:
    assert [one for one in _everything() if Allowed().permits(HTTPS, [ip_address(one)])] == []
    assert not Allowed().permits(HTTPS, [])


@pytest.mark.parametrize(
    ("url", "host", "port", "path"),
    [
        ("https://hooks.test", "hooks.test", 443, "/"),
        ("https://Hooks.Test:8443/a/b?c=d&e=%2F", "hooks.test", 8443, "/a/b?c=d&e=%2F"),
        ("https://hooks.test?c=d", "hooks.test", 443, "/?c=d"),
        ("https://hooks.test/@a:b", "hooks.test", 443, "/@a:b"),
        ("https://xn--bcher-kva.test/", "xn--bcher-kva.test", 443, "/"),
        ("https://93.184.215.14/", PUBLIC, 443, "/"),
        ("https://[2606:4700:0:0::1111]:443/", "2606:4700::1111", 443, "/"),
    ],
)
def test_a_url_is_taken_apart_as_others_do(url: str, host: str, port: int, path: str) -> None:
    target = target_of(url, Allowed())

    others = urlsplit(url)
    assert (target.host, target.port, target.path) == (host, port, path)
    assert ip_address(others.hostname or "") == target.address if target.address else others.hostname == host
    assert ((others.port or 443), target.scheme) == (port, "https")


@pytest.mark.parametrize(
    "url",
    [
        "",
        "https://",
        "https://a..b/",
        "https://-a.test/",
        "https://a.test:0/",
        "https://a.test:65536/",
        "https://a.test:/",
        "https://a.test/#part",
        "https://a.test/a b",
        "https://a.test/%zz",
        "https://a.test/\u20ac",
        "https://b\u00fccher.test/",
        f"https://{'a' * 64}.test/",
        f"https://{'a.' * 127}test/",
        f"https://a.test/{'a' * 2048}",
        "https://a.test:443443443/",
    ],
)
def test_a_malformed_url_is_refused(url: str) -> None:
    with pytest.raises(WebhookUrlRefused, match="https://host"):
        parsed(url)


def test_a_password_in_a_url_is_not_shown() -> None:
    with pytest.raises(WebhookUrlRefused) as refused:
        parsed("https://me:hunter2@a.test/")

    assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize(
    ("rule", "url", "address"),
    [
        ("10.1.0.0/16", "https://hooks.test/", "10.1.2.3"),
        ("10.1.0.0/16", "https://hooks.test:8443/", "10.1.2.3"),
        ("127.0.0.1:9000", "https://127.0.0.1:9000/", "127.0.0.1"),
        ("fd12::/64", "https://hooks.test/", "fd12::7"),
        ("http://[::1]:9000", "http://[::1]:9000/", "::1"),
        ("http://[fd12::/64]:9000", "http://hooks.test:9000/", "fd12::7"),
        ("Hooks.test", "https://hooks.test/", "192.168.1.1"),
        ("http://hooks.test", "http://hooks.test/", "192.168.1.1"),
        ("hooks.test:9443", "https://hooks.test:9443/", PUBLIC),
    ],
)
def test_a_rule_allows_what_it_names(rule: str, url: str, address: str) -> None:
    assert goes(Allowed.parsed([rule]), url, address)
    assert not goes(Allowed(), url, address)


@pytest.mark.parametrize(
    ("rule", "url", "address"),
    [
        ("10.1.0.0/16", "https://hooks.test/", "10.2.0.1"),
        ("10.1.0.0/16", "https://hooks.test:9000/", "10.1.0.1"),
        ("10.1.0.0/16", "http://hooks.test/", "10.1.0.1"),
        ("10.1.0.0/16", "https://hooks.test/", "::ffff:10.1.0.1"),
        ("10.1.0.0/16:9000", "https://hooks.test/", "10.1.0.1"),
        ("hooks.test", "https://other.hooks.test/", "10.1.0.1"),
        ("127.0.0.0/8", "https://hooks.test/", "0.0.0.1"),
    ],
)
def test_a_rule_allows_nothing_else(rule: str, url: str, address: str) -> None:
    assert not goes(Allowed.parsed([rule]), url, address)


def test_no_rule_allows_metadata_or_what_is_no_single_machine() -> None:
    everything = Allowed.parsed(["0.0.0.0/0", "::/0", "hooks.test"])
    forms = [form for address in NEVER_V4 for form in (address, within_v6(address)["mapped"])]
    forms += [within_v6(address)["NAT64"] for address in NEVER_V4]

    assert [one for one in (*forms, *NEVER_V6) if goes(everything, "https://hooks.test/", one)] == []
    assert goes(everything, "https://hooks.test/", "10.0.0.1")


@pytest.mark.parametrize(
    "rule",
    [
        *(
            "",
            "10.1.0.1/16",
            "10.1.0.0/33",
            "10.1",
            "ftp://a.test",
            "a.test:0",
            "a.test:65536",
            "a.test/path",
            "*.test",
        ),
        *(
            "http://",
            "[a.test]",
            "fd12::/200",
            "169.254.169.254",
            "169.254.0.0/24",
            "[fe80::1]:9000",
            "a b",
            "0x7f.1",
        ),
    ],
)
def test_a_rule_that_cannot_be_read_or_held_is_refused(rule: str) -> None:
    with pytest.raises(ConfigError, match="webhooks are allowed to"):
        Allowed.parsed([rule])


def goes(allow: Allowed, url: str, address: str) -> bool:
    try:
        return allow.permits(target_of(url, allow), [ip_address(address)])
    except WebhookUrlRefused:
        return False
