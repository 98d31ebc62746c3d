"""What strangers write: hostile names, values of every wrong type, and texts that are nearly JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from tests.web.reading.test_strict import REFUSED as STRICTLY_REFUSED

NAMES = (
    *("", " ", "\t", ".", "..", "../../etc/passwd", "..\\..\\boot.ini", "/etc/passwd", "//host/share", "a/../../b"),
    *("%2e%2e%2f", "%00", "%0d%0aSet-Cookie: a=b", "\r\nX-Injected: 1", "a\nb", "\x1b[31mred", "\x7f", "\x08"),
    *("\u0085",),
    *("<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "javascript:alert(1)", "{{7*7}}", "${7*7}"),
    *("#{7*7}",),
    *("' OR 1=1 --", "'; DROP TABLE jobs; --", "1) UNION SELECT 1", "\\'", "$1", ":id", "%s", "%(id)s", "{id}"),
    *("{0.__class__}",),
    *("__proto__", "constructor", "prototype", "toString", "__class__", "__init__", "self", "None", "null"),
    *("undefined",),
    *("NaN", "Infinity", "-1", "0", "1e309", "true", "id", "ID", "job ", " job", "Job", "jоb", "ｊｏｂ", "args.path"),
    *("args[path]",),
    *("$where", "$ne", "$ref", "@type", "xmlns", "csrf", "key\u200b", "\u202egnp.exe", "\u2066a\u2069", "\ufeffjob"),
    *("\ud7ff",),
    *("e\u0301" * 30, "Z\u0351\u036b\u0343" * 20, "👩‍👩‍👧‍👦", "ﷺ" * 50, "İ", "ß", "ſ", "\u2028", "\u2029", "\ue000"),
    *("\U0010ffff",),
    *("a" * 300, "a" * 5000, "é" * 200, "a," * 100, ";", "&", "=", "?", "#", "|", "`id`", "$(id)", "&& id", "../" * 40),
    *("CON", "nul", "C:\\", "file:///etc/passwd", "http://169.254.169.254/", "gopher://a", "ldap://a", "\\\\a\\b", "~"),
    *("*",),
)  # fmt: skip

VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 1.5, -0.0, 1e308, 5e-324, 2**63 - 1, 2**63, -(2**63), 2**64 - 1, 2**31),
    *(-(2**31) - 1,),
    *("", "a", "1", "true", "null", "2026-01-01", "2026-13-45T99:99:99Z", "2026-01-01T00:00:00"),
    *("0001-01-01T00:00:00Z",),
    *("9999-12-31T23:59:59+00:00", "a" * 10_000, "\u202e", "é" * 300, "00000000-0000-0000-0000-000000000000", "PT1H"),
    *([], [[]], [None], [1, "a"], ["a"] * 2_000, [{}], {}, {"a": 1}, {"": {}}, {"__proto__": {"admin": True}}),
    *({"$ne": 1},),
    *({"by": 1}, {"key": None}, {"base_s": "a"}, [[[[[[]]]]]], {"a": {"b": {"c": [1, 2, {"d": None}]}}}),
)  # fmt: skip

# Texts which the JSON module does not write.
RAW_VALUES = (
    *(b"NaN", b"-Infinity", b"1e400", b"18446744073709551616", b"-9223372036854775809", b"1" * 5_000),
    *(b"0." + b"1" * 500,),
    *(b"01", b"+1", b"0x10", b".5", b"1.", b"'a'", b"\"\\u0000\"", b"\"a\0b\"", b"\"\\ud800\""),
    *(b"\"\\udc00\\ud800\"",),
    *(b"\"\xff\"", b"\"\xc0\xaf\"", b"\"\xed\xa0\x80\"", b"\"\n\"", b"\"\\x41\"", b"{\"a\":1,\"a\":1}", b"[1,]"),
    *(b"{,}", b"//", b""),
    *(b"[" * 65 + b"]" * 65, b"{\"a\":" * 65 + b"1" + b"}" * 65, b"undefined", b"True", b"{\"b\":{\"c\":NaN}}"),
)  # fmt: skip


def broken() -> Iterator[bytes]:
    """Bodies that are no JSON, or none that everybody reads alike."""
    yield from dict.fromkeys(body for body, _ in STRICTLY_REFUSED if len(body) < 64 * 1024)
    yield from (b"null", b"true", b"0", b'"text"', b"[]", b"[{}]", b"[[]]")  # JSON, and no object
    for depth in (65, 1_000, 100_000):
        yield from (b"[" * depth, b"[" * depth + b"]" * depth, b'{"a":' * depth + b"1" + b"}" * depth)
        yield from (b"[{" * depth, b'[{"a":' * depth, b"]" * depth, b'{"a":[' * depth)
    yield b'{"args":' + b'{"a":' * 100_000 + b"1" + b"}" * 100_001
    yield from (
        b'"' + b"a" * 500_000,
        b'{"job":"' + b"\\u0041" * 80_000,
        b"9" * 500_000,
        b" " * 500_000,
        b"\0" * 10_000,
    )
    yield json.dumps({f"n{number}": number for number in range(10_001)}).encode()
    yield b"[" + b"0," * 100_001 + b"0]"


def hostile() -> Iterator[str]:
    """Names that hurt where they are not only kept and shown."""
    yield from NAMES
