"""Where no webhook may go, in every way to write it: URLs, and what a resolver may answer."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv4Address

PUBLIC = "93.184.215.14"

# The first and the last of each range, and what is known in it.
FORBIDDEN_V4 = (
    *("0.0.0.1", "0.255.255.255", "10.0.0.0", "10.255.255.255", "100.64.0.0", "100.127.255.255"),
    *("127.0.0.1", "127.255.255.254", "169.254.0.1", "169.254.169.254", "169.254.170.2", "169.254.255.255"),
    *("172.16.0.1", "172.31.255.255", "192.0.0.8", "192.0.0.192", "192.0.2.1", "192.88.99.1", "192.168.0.1"),
    *("192.168.255.255", "198.18.0.1", "198.19.255.255", "198.51.100.1", "203.0.113.1", "224.0.0.1"),
    *("239.255.255.255", "240.0.0.1", "255.255.255.255", "100.100.100.200", "168.63.129.16"),
)
FORBIDDEN_V6 = (
    *(
        "::",
        "::1",
        "::2",
        "100::1",
        "64:ff9b:1::1",
        "64:ff9b:1:ffff::1",
        "2001::1",
        "2001:1ff:ffff::1",
        "2001:db8::1",
    ),
    *(
        "3fff::1",
        "5f00::1",
        "fc00::1",
        "fdff::1",
        "fd00:ec2::254",
        "fd20:ce::254",
        "fe80::1",
        "febf::1",
        "fec0::1",
    ),
    *("ff00::1", "ff02::1", "ffff::1", "1fff::1", "4000::1", "fe80::1%eth0"),
)
# No rule allows these.
NEVER_V4 = (
    *("0.0.0.1", "0.255.255.255", "100.100.100.200", "168.63.129.16", "169.254.169.254", "169.254.170.2"),
    *("192.0.0.192", "224.0.0.1", "239.255.255.255", "240.0.0.1", "255.255.255.255"),
)
NEVER_V6 = (
    "::",
    "fd00:ec2::254",
    "fd20:ce::254",
    "fe80::1",
    "fec0::1",
    "ff02::1",
    "2002:a9fe:a9fe::1",
    "fd12::1%eth0",
)
PUBLIC_ADDRESSES = (
    *(
        "1.1.1.1",
        "9.255.255.255",
        "11.0.0.0",
        "100.63.255.255",
        "100.128.0.0",
        "126.255.255.255",
        "128.0.0.0",
    ),
    *(
        "169.253.255.255",
        "169.255.0.0",
        "172.15.255.255",
        "172.32.0.0",
        "192.0.1.0",
        "192.0.3.0",
        "192.88.98.255",
    ),
    *("192.167.255.255", "192.169.0.0", "198.17.255.255", "198.20.0.0", "203.0.112.255", "223.255.255.255"),
    *("2000::1", "2001:200::1", "2606:4700:4700::1111", "2a00:1450:4001:80b::200e", "3ffe::1"),
    *("64:ff9b::101:101", "2002:101:101::1", "::ffff:1.1.1.1"),
)


def within_v6(text: str) -> dict[str, str]:
    """An IPv4 address in every address of IPv6 that leads to it, or once did."""
    number = int(IPv4Address(text))
    high, low = f"{number >> 16:x}", f"{number & 0xFFFF:x}"
    inverted = number ^ 0xFFFF_FFFF
    return {
        "mapped": f"::ffff:{text}",
        "mapped, in hexadecimal": f"::ffff:{high}:{low}",
        "compatible": f"::{high}:{low}",
        "translated": f"::ffff:0:{high}:{low}",
        "NAT64": f"64:ff9b::{high}:{low}",
        "NAT64 of a network": f"64:ff9b:1::{high}:{low}",
        "6to4": f"2002:{high}:{low}::1",
        "Teredo": f"2001:0:102:304::{inverted >> 16:x}:{inverted & 0xFFFF:x}",
        "ISATAP": f"2606:4700::5efe:{high}:{low}",
        "ISATAP, of a public one": f"2606:4700::200:5efe:{high}:{low}",
    }


def written(text: str) -> Iterator[str]:
    """An IPv4 address as some parser or resolver reads it."""
    number = int(IPv4Address(text))
    parts = [int(part) for part in text.split(".")]
    tail = number & 0xFF_FFFF
    yield from (
        text,
        f"{text}.",
        f"{number}",
        f"{number:#x}",
        f"{number:#X}",
        f"0{number:o}",
        f"{number + (1 << 32)}",
    )
    for form in ("0{:o}", "{:#x}", "{:#X}", "{:#010x}", "{:03d}", "0000{:o}"):
        yield ".".join(form.format(part) for part in parts)
    yield from (f"{parts[0]}.{tail}", f"{parts[0]:#x}.{tail:#x}", f"{parts[0]}.{parts[1]}.{tail & 0xFFFF}")
    yield from (
        f"{parts[0]}.0x{parts[1]:x}.0{parts[2]:o}.{parts[3]}",
        f"{text}.0",
        f".{text}",
        f"{text}%00",
        f"{text}%2e",
    )
    yield text.translate({ord("0") + digit: 0xFF10 + digit for digit in range(10)})  # digits of full width
    yield text.translate({ord("1") + digit: 0x2460 + digit for digit in range(9)})  # in circles
    yield from (text.replace(".", "\u3002"), text.replace(".", "%2e"), text.replace(".", "\uff0e"))
    yield from (f"[{address}]" for address in within_v6(text).values())
    yield from (
        f"[::ffff:{text}%25lo]",
        f"[::ffff:{text}%lo]",
        f"[{text}]",
        f"[::FFFF:{text}]",
        f"[v1.{text}]",
    )


def urls(port: int) -> Iterator[str]:
    """What somebody may give as a URL."""
    for address in FORBIDDEN_V4:
        yield from (f"https://{host}:{port}/" for host in written(address))
    for address in FORBIDDEN_V6:
        yield f"https://[{address}]:{port}/"
    for here in ("127.0.0.1", "localhost", "[::1]"):
        place = f"{here}:{port}"
        yield from (
            f"https://{PUBLIC}@{place}/",
            f"https://{PUBLIC}:443@{place}/",
            f"https://{PUBLIC}%40{place}/",
        )
        yield from (
            f"https://{PUBLIC}\\@{place}/",
            f"https://{PUBLIC}#@{place}/",
            f"https://{PUBLIC}/\r\nHost: {place}",
        )
        yield from (
            f"https:{place}/",
            f"https:/{place}/",
            f"https:///{place}/",
            f"//{place}/",
            f"https:\\\\{place}\\",
        )
        yield from (
            f" https://{place}/",
            f"https://{place}/ ",
            f"https://\t{place}/",
            f"https://{place}\n/",
            f"HTTPS://{place}/",
        )
        yield from (
            f"http://{place}/",
            f"ftp://{place}/",
            f"file://{place}/etc/passwd",
            f"gopher://{place}/_",
            f"unix://{place}/",
        )
        yield from (
            f"https://{place}\x00.example/",
            f"https://{place}#.example/",
            f"https://{place}:443/",
            f"https://{place}%23/",
        )


def answers() -> Iterator[list[str]]:
    """What a resolver may say of a name: one forbidden address suffices, wherever it stands."""
    for address in FORBIDDEN_V4:
        yield from ([address], [PUBLIC, address], [address, PUBLIC], [PUBLIC, PUBLIC, address, PUBLIC])
        yield from ([PUBLIC, form] for form in within_v6(address).values())
    yield from ([address] for address in FORBIDDEN_V6)
    yield from (["2606:4700::1111", address] for address in FORBIDDEN_V6)
