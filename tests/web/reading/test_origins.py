"""Where a request comes from, and under which name it asks."""

from __future__ import annotations

import pytest

from fencerow.core.errors import ConfigError
from fencerow.web.errors import InvalidRequest
from fencerow.web.reading.callers import caller_of
from fencerow.web.reading.origins import address_of, check_host, check_settings
from fencerow.web.settings import WebSettings

NAMED = "api.example.com, *.example.org,[2001:db8::1]"


@pytest.mark.parametrize(
    ("hosts", "host", "status"),
    [
        *((None, each, 200) for each in ("localhost", "LOCALHOST:8080", "127.0.0.1:80", "[::1]:1", "a.localhost",
        "192.0.2.7", "localhost.")),
        *((None, each, 421) for each in ("evil.example", "127.0.0.1.evil.example", "localhost.evil.example",
        "xlocalhost", "1.2.3", "127.1")),
        *((NAMED, each, 200) for each in ("api.example.com", "API.example.COM:443", "a.example.org",
        "a.b.example.org", "[2001:db8::1]:80")),
        *((NAMED, each, 421) for each in ("example.org", "xexample.org", "localhost", "127.0.0.1",
        "api.example.com.evil", "[2001:db8::2]")),
        *(("*", each, 200) for each in ("any.example", "127.0.0.1")),
        *((None, each, 400) for each in ("", " ", "a b", "localhost:x", "localhost:", "localhost:999999",
        "a@localhost", "localhost/x",
            "http://localhost", "localhost,evil", "[::1", "::1", "é", "\0", "localhost\r\nx: y",
            "x" * 300, "localhost\n", "[::1]x", "..")),
    ],
    ids=lambda part: ascii(part)[:40],
)  # fmt: skip
def test_a_name_that_is_not_ours_is_refused(hosts: str | None, host: str, status: int) -> None:
    settings = WebSettings(web_hosts=hosts)
    if status == 200:
        check_host([host], settings)
        return
    with pytest.raises(InvalidRequest) as refused:
        check_host([host], settings)
    assert refused.value.status == status and "\r" not in str(refused.value)


@pytest.mark.parametrize("values", [[], ["localhost", "localhost"], ["localhost", "evil"]])
def test_there_is_one_host(values: list[str]) -> None:
    with pytest.raises(InvalidRequest) as refused:
        check_host(values, WebSettings(web_hosts="*"))
    assert refused.value.status == 400


PROXIES = "10.0.0.0/8,fd00::/8"


@pytest.mark.parametrize(
    ("proxies", "peer", "forwarded", "address"),
    [
        (None, "192.0.2.1", (), "192.0.2.1"), (None, "10.0.0.1", ("192.0.2.9",), "10.0.0.1"),
        (None, None, ("192.0.2.9",), None),
        (PROXIES, "192.0.2.1", ("198.51.100.1",), "192.0.2.1"), (PROXIES, "10.0.0.1", ("192.0.2.9",), "192.0.2.9"),
        (PROXIES, "10.0.0.1", ("1.1.1.1, 192.0.2.9",), "192.0.2.9"),
        (PROXIES, "10.0.0.1", ("1.1.1.1", "192.0.2.9 , 10.2.3.4"), "192.0.2.9"),
        (PROXIES, "10.0.0.1", ("192.0.2.9:4711",), "192.0.2.9"),
        (PROXIES, "10.0.0.1", ("[2001:db8::1]:80",), "2001:db8::1"),
        (PROXIES, "fd00::1", ("2001:DB8:0::1",), "2001:db8::1"),
        (PROXIES, "::ffff:10.0.0.1", ("::ffff:192.0.2.9",), "192.0.2.9"),
        (PROXIES, "10.0.0.1", (), "10.0.0.1"), (PROXIES, "10.0.0.1", ("10.0.0.2",), "10.0.0.2"),
        (PROXIES, None, ("192.0.2.9",), None),
        ("unix", None, ("192.0.2.9",), "192.0.2.9"), ("unix", None, (), None),
        ("unix", "192.0.2.1", ("192.0.2.9",), "192.0.2.1"),
        ("unix," + PROXIES, None, ("192.0.2.9, 10.0.0.2",), "192.0.2.9"),
        (PROXIES, "10.0.0.1", (",".join(["192.0.2.9"] + ["10.0.0.2"] * 99_999),), "10.0.0.2"),
        *((PROXIES, "10.0.0.1", (f"192.0.2.9, {each}",), "10.0.0.1") for each in (
            "unknown", "", "_x", "10.0.0", "fe80::1%eth0", "<script>", "1.2.3.4.5", "a\r\nb", "\0",
            "x" * 99_999, "0x7f.1", "[::1", "٣.1.1.1",
        )),
        (None, "testclient", (), None),
    ],
    ids=lambda part: ascii(part)[:30],
)  # fmt: skip
def test_a_proxy_is_believed_if_it_is_ours(
    proxies: str | None, peer: str | None, forwarded: tuple[str, ...], address: str | None
) -> None:
    assert address_of((peer, 1) if peer else None, forwarded, WebSettings(web_proxies=proxies)) == address


WRONG = [
    *(WebSettings(web_proxies=each) for each in ("10.0.0.1/8", "10.0.0.0/99", "proxy.internal")),
    *(WebSettings(web_hosts=each) for each in ("a b", "https://a", "a:80", ",", "*.*.example")),
]


@pytest.mark.parametrize("wrong", WRONG, ids=lambda wrong: str(wrong.web_hosts or wrong.web_proxies))
def test_settings_that_cannot_be_understood_are_refused_at_the_start(wrong: WebSettings) -> None:
    check_settings(WebSettings(web_hosts=NAMED, web_proxies=PROXIES))
    with pytest.raises(ConfigError):
        check_settings(wrong)


@pytest.mark.parametrize(
    ("token_id", "address", "caller"),
    [
        ("t1", "192.0.2.1", "token:t1"), ("", "192.0.2.1", "address:192.0.2.1"), ("", None, "address:unknown"),
        ("", "x", "address:unknown"),
        ("", "2001:db8:0:1:2::3", "address:2001:db8:0:1::/64"),
        ("", "2001:db8:0:1:ffff::", "address:2001:db8:0:1::/64"),
    ],
)  # fmt: skip
def test_a_caller_is_a_token_or_a_network(token_id: str, address: str | None, caller: str) -> None:
    assert caller_of(token_id, address) == caller
