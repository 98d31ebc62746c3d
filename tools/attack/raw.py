"""What is no HTTP, or HTTP that two readers would cut into different requests."""

from __future__ import annotations

from collections.abc import Iterator

from tools.attack.case import REFUSED, Case

# Where this is answered, somebody has taken the rest of one request for another one.
SMUGGLED = b"GET /smuggled HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
ANY = frozenset(range(200, 500))
HEAD = (
    b"POST /v1/jobs:validate HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer %s\r\n"
    b"Content-Type: application/json\r\n"
)
BODY = b'{"job":"pages","args":{"path":"a"}}'


def _lengths() -> Iterator[bytes]:
    chunked = b"%x\r\n%s\r\n0\r\n\r\n" % (len(BODY), BODY)
    for length in (b"0", b"5", b"%d" % len(chunked)):
        yield b"Content-Length: %s\r\nTransfer-Encoding: chunked\r\n\r\n" % length + chunked + SMUGGLED
        yield b"Transfer-Encoding: chunked\r\nContent-Length: %s\r\n\r\n" % length + chunked + SMUGGLED
    for coding in (
        *(
            b"xchunked",
            b"chunked, identity",
            b"identity, chunked",
            b"chunked, chunked",
            b"gzip, chunked",
            b"\x0bchunked",
        ),
        *(b"chunked\x00", b"chunked;a=b", b"'chunked'", b"identity", b"", b"chunked\r\nTransfer-Encoding: x"),
    ):
        yield b"Transfer-Encoding: " + coding + b"\r\n\r\n" + chunked + SMUGGLED
    for name in (
        b"Transfer-Encoding ",
        b" Transfer-Encoding",
        b"Transfer_Encoding",
        b"X: a\nTransfer-Encoding",
    ):
        yield name + b": chunked\r\nContent-Length: 3\r\n\r\n" + chunked + SMUGGLED
    for told in (
        *(b"+35", b"-1", b"0x23", b"35, 36", b"35 36", b"35.0", b"3 5", b"1e2", b"", b"9" * 400, b"\xd9\xa3"),
        *(b"35\r\nContent-Length: 36", b"35\x00", b"_35", b"35;", b"NaN"),
    ):
        yield b"Content-Length: " + told + b"\r\n\r\n" + BODY + SMUGGLED


def _chunks() -> Iterator[bytes]:
    for chunk in (
        *(
            b"zz\r\na\r\n",
            b"-1\r\na\r\n",
            b"0x1\r\na\r\n",
            b"1\na\n",
            b"fffffffffffffffff\r\na\r\n",
            b"\r\n\r\n",
        ),
        *(b"1\r\nab\r\n", b"1\r\na", b"+1\r\na\r\n", b"1_0\r\na\r\n"),
        *(b"\x31\xb2\r\na\r\n", b"1,1\r\na\r\n", b"00000000000000000000000001\r\na\r\n", b"1\r\r\na\r\n"),
    ):
        yield b"Transfer-Encoding: chunked\r\n\r\n" + chunk + b"0\r\n\r\n" + SMUGGLED


def _clear() -> Iterator[bytes]:
    """Odd, but every reader sees the same end."""
    chunked = b"%x\r\n%s\r\n0\r\n\r\n" % (len(BODY), BODY)
    yield b"Transfer-Encoding: chunKed\r\n\t\r\n\r\n" + chunked
    for told in (b"35, 35", b"35\r\nContent-Length: 35", b"035"):
        yield b"Content-Length: " + told + b"\r\n\r\n" + BODY
    for chunk in (b"1 \r\na\r\n", b"1;" + b"e" * 70_000 + b"\r\na\r\n", b"1;\x00\r\na\r\n"):
        yield b"Transfer-Encoding: chunked\r\n\r\n" + chunk + b"0\r\n\r\n"
    trailers = b"0\r\nContent-Length: 5\r\nAuthorization: Bearer a\r\n" + b"X: a\r\n" * 3_000 + b"\r\n"
    yield b"Transfer-Encoding: chunked\r\n\r\n" + trailers
    yield b"Transfer-Encoding: chunked\r\n\r\n" + b"1\r\n[\r\n" * 50_000 + b"0\r\n\r\n"
    yield b"Transfer-Encoding: chunked\r\n\r\n" + b"8000\r\n" + b" " * 0x8000 + b"\r\n" + b"8000\r\n"


def _no_http() -> Iterator[bytes]:
    host = b"\r\nHost: 127.0.0.1\r\n\r\n"
    yield from (
        b"\r\n\r\n\r\n",
        b"GET\r\n\r\n",
        b"GET /\r\n\r\n",
        b"GET / HTTP/9.9" + host,
        b"GET / HTTP/1.1.1" + host,
    )
    yield from (b"SSH-2.0-OpenSSH_9.2\r\n", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\0" * 200)
    yield from (
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"\0" * 4_000,
        b"\xff" * 4_000,
        b"A" * 100_000,
        b"GET /" + b"a" * 100_000,
    )
    yield from (
        b"GET /livez HTTP/1.1" + host.replace(b"\r", b""),
        b"GET\t/livez\tHTTP/1.1" + host,
        b"GET  /livez  HTTP/1.1" + host,
    )
    for target in (
        *(
            b"http://evil.example/livez",
            b"//evil.example/livez",
            b"*",
            b"/livez\x00",
            b"/livez\x0b",
            b"/a b",
            b"livez",
            b"/\xff",
        ),
        *(
            b"http://127.0.0.1:1/livez",
            b"/%00",
            b"/%ff",
            b"/%",
            b"/..%2f..%2fetc/passwd",
            b"/v1/jobs/../../livez",
            b"/livez/",
        ),
        *(
            b"?",
            b"",
            b"/livez?a#b",
            b"/livez;a=b",
            b"\\livez",
            b"/v1//jobs",
            b"/./livez",
            b"/v1/jobs%00",
            b"/V1/JOBS",
        ),
    ):
        yield b"GET " + target + b" HTTP/1.1" + host
    yield b"CONNECT 169.254.169.254:80 HTTP/1.1" + host
    for header in (
        *(
            b"Upgrade: websocket\r\nConnection: Upgrade",
            b"Upgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: AA",
        ),
        *(
            b"Expect: 100-continue",
            b"Expect: tea",
            b"Connection: close, keep-alive",
            b"Connection: Host",
            b"TE: trailers",
        ),
        *(
            b"Range: bytes=0-18446744073709551615",
            b"If-Match: *",
            b"X-HTTP-Method-Override: DELETE",
            b"X-Original-URL: /v1/jobs",
        ),
        *(
            b"Forwarded: for=127.0.0.1",
            b"X-Forwarded-For: 127.0.0.1" + b", 1.1.1.1" * 2_000,
            b"Cookie: " + b"a=b;" * 7_000,
        ),
        *(
            b"traceparent: 00-" + b"f" * 5_000,
            b"tracestate: " + b"a=b," * 7_000,
            b"Last-Event-ID: " + b"9" * 9_000,
        ),
        *(b"Prefer: wait=" + b"9" * 5_000, b"Prefer: " + b"wait=1," * 4_000, b"Accept: " + b"*/*," * 7_000),
    ):
        yield b"GET /v1/jobs HTTP/1.1\r\n" + header + host
        yield b"GET /livez HTTP/1.1\r\n" + header + host


def wires(token: str) -> Iterator[Case]:
    """Each over a connection of its own."""
    head = HEAD % token.encode()
    for raw in (*_lengths(), *_chunks(), *_clear()):
        yield Case("smuggling", "POST", "/v1/jobs:validate", raw=head + raw, alone=True, allowed=ANY)
    for raw in _no_http():
        yield Case("no HTTP", "GET", "/", raw=raw, alone=True, allowed=ANY | REFUSED)
