"""The corpus: bad requests of every kind to every operation of the document, always the same ones."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from urllib.parse import quote

from tools.attack.bodies import of_bodies, of_fields, of_meanings, of_media, of_mutations
from tools.attack.case import JSON, NOBODY_ID, READ, Case, encoded, varied
from tools.attack.described import Document, Operation, operations
from tools.attack.words import NAMES

METHODS = (
    *(
        "GET",
        "POST",
        "PUT",
        "PATCH",
        "DELETE",
        "OPTIONS",
        "TRACE",
        "PROPFIND",
        "MKCOL",
        "FOO",
        "get",
        "POST1",
        "G-E_T",
    ),
    *("QUERY", "LOCK", "__proto__", "A" * 100),
)
HOSTS = (
    *(
        "evil.example",
        "127.0.0.1.evil.example",
        "localhost.evil.example",
        "127.0.0.1@evil.example",
        "evil.example:80",
    ),
    *(
        "[::1]evil",
        "evil.example#127.0.0.1",
        "127.0.0.1:99999999",
        "127.0.0.1:-1",
        "127.0.0.1:abc",
        "xn--lcalhost-wfb",
    ),
    *(
        "*",
        "local host",
        "a" * 300,
        "é.example",
        "127.0.0.1, evil.example",
        "http://127.0.0.1",
        "2130706433.evil",
    ),
)


def of_methods(each: Operation, known: Sequence[str]) -> Iterator[Case]:
    """Methods that the path does not take."""
    for method in METHODS:
        if method.lower() not in known or method != method.upper():
            yield Case("method", method, each.target(NOBODY_ID), headers=[JSON], body=b"{}")


def of_paths(each: Operation) -> Iterator[Case]:
    """Ids that are none, and paths that lead elsewhere."""
    method = each.method.upper()
    body = encoded(each.example()) if each.body is not None else None
    for name in NAMES if "{id}" in each.path else NAMES[::4]:
        once = quote(name, safe="")
        for written in dict.fromkeys((once, quote(once, safe=""), f"{NOBODY_ID}{once}")):
            if "{id}" in each.path and written != NOBODY_ID:
                target = each.target(written or "%20")
                yield Case("id", method, target, headers=[JSON], body=body)
        if "{id}" not in each.path:
            target = f"{each.path}/{quote(name, safe='')}"
            yield Case("path", method, target, headers=[JSON], body=body)


def of_tokens(each: Operation) -> Iterator[Case]:
    """Callers who may not."""
    if each.scope is None:
        return
    method, target = each.method.upper(), each.target(NOBODY_ID)
    body = encoded(each.example()) if each.body is not None else None
    base = Case(
        "token",
        method,
        target,
        token=None,
        headers=[JSON],
        body=body,
        allowed=frozenset({400, 401, 403, 431}),
    )
    values = (
        *(
            "",
            "Bearer",
            "Bearer ",
            "Basic YWRtaW46YWRtaW4=",
            "Bearer fct_",
            "Bearer fct_" + "A" * 43,
            "Digest a",
            "Token a",
        ),
        *(
            "Bearer null",
            "Bearer undefined",
            "Bearer ' OR 1=1 --",
            "Bearer " + "a" * 600,
            "Bearer a b",
            "Bearer é",
            "fct_a",
        ),
        *(
            "Bearer eyJhbGciOiJub25lIn0.e30.",
            "Bearer ../../etc/passwd",
            "Bearer %00",
            "Bearer a, Bearer b",
            "bearer\tfct_a",
        ),
        "Bearer fct_" + "A" * 20_000,
    )
    yield base
    for value in values:
        yield varied(base, headers=[JSON, ("Authorization", value)])
    for name in ("expired", "revoked"):
        yield varied(base, token=name)
    yield varied(base, token="read" if each.scope != "read" else "submit", allowed=frozenset({403}))
    yield varied(base, token="all", headers=[JSON, ("Authorization", "Bearer a")])
    for place in ("access_token", "token", "api_key"):
        yield varied(base, target=f"{target}?{place}=a")


def of_hosts(each: Operation) -> Iterator[Case]:
    """Names that are not ours, none, and several."""
    base = Case(
        "host",
        each.method.upper(),
        each.target(NOBODY_ID),
        headers=[JSON],
        body=b"{}",
        allowed=frozenset({400, 421}),
    )
    for host in HOSTS:
        yield varied(base, host=host)
    yield varied(base, host=None, alone=True)
    yield varied(base, headers=[JSON, ("Host", "evil.example")], alone=True)


def of_headers(each: Operation) -> Iterator[Case]:
    """Too many headers, too long ones, and what would break a line."""
    base = Case("headers", each.method.upper(), each.target(NOBODY_ID), body=b"{}", alone=True)
    yield varied(base, headers=[(f"X-{number}", "a") for number in range(150)])
    yield varied(base, headers=[("X-Long", "a" * 20_000), ("X-Longer", "b" * 12_700)])
    yield varied(base, headers=[("X-Bomb", "a" * 200_000)])
    yield varied(base, headers=[("X" * 40_000, "a")])
    for control in ("\x01", "\x00", "\x0b", "\x1b[2J", "\x7f", "\r"):
        yield varied(base, headers=[("X-Odd", f"a{control}b")])
    for name in ("X Odd", "X-Odd\x00", "", "(X)", "é", "X-Odd "):
        yield varied(base, headers=[(name, "a")])
    yield varied(base, headers=[("X-Folded", "a\n b")], allowed=READ)


def of_queries(each: Operation) -> Iterator[Case]:
    """Parameters that nobody knows, twice, with values that do not fit, or that try to be more than values."""
    base = Case("query", each.method.upper(), each.target(NOBODY_ID), headers=[JSON])
    if each.body is not None:
        base = varied(base, body=encoded(each.example()))
    for name in NAMES[::3]:
        yield varied(base, target=f"{base.target}?{quote(name, safe='')}%20=1")
    if each.writes or each.body is not None:
        return
    for name in each.query:
        for value in NAMES[::2]:
            yield varied(base, target=f"{base.target}?{name}={quote(value, safe='')}", allowed=READ)
        for odd in (
            "%",
            "%zz",
            "%c0%af",
            "%ff",
            "%ed%a0%80",
            "a&" * 500,
            "a" * 20_000,
            f"1&{name}=2",
            "a;b",
            "+",
        ):
            yield varied(base, target=f"{base.target}?{name}={odd}", allowed=READ)


def of_cursors() -> Iterator[Case]:
    """Cursors that no page gave: altered, cut off, too long, of something else."""
    drawn = random.Random(30)
    real = "AZAAAAAAcACAAAAAAAAAAA"
    texts = [real[:length] for length in range(1, len(real))] + [real + "A" * more for more in (1, 2, 3, 300)]
    alphabet = "ABCDEFxyz019-_+/=%20.~!\\\"'"
    for _ in range(400):
        at = drawn.randrange(len(real))
        texts.append(real[:at] + drawn.choice(alphabet) * drawn.randint(1, 3) + real[at + 1 :])
    for text in texts:
        yield Case("cursor", "GET", f"/v1/jobs?cursor={quote(text, safe='%')}", allowed=READ)
    for route in ("/v1/schedules?after=", "/v1/schedules?after_entity="):
        yield from (
            Case("cursor", "GET", route + quote(text, safe="%"), allowed=READ) for text in texts[:150]
        )


def of_keys(ids: Mapping[str, str]) -> Iterator[Case]:
    """Idempotency keys that are none, and those that belong to other work. What fits is only asked about."""
    job = encoded({"job": "pages", "args": {"path": "other.pdf"}})
    base = Case("key", "POST", "/v1/jobs", headers=[JSON], body=job)
    empty = (
        "",
        '""',
        '"',
        "a,b",
        '"a" "b"',
        '"' + "a" * 300 + '"',
        "a" * 300,
        '"a',
        'a"',
        "é",
        "a b",
        '"\\x"',
        "'a",
        "\t",
    )
    for value in empty[:-2]:
        yield varied(base, headers=[JSON, ("Idempotency-Key", value)])
    yield varied(base, headers=[JSON, ("Idempotency-Key", "a"), ("Idempotency-Key", "a")])
    yield varied(base, headers=[JSON, ("Idempotency-Key", '"k-1"')], allowed=frozenset({409}))
    foreign = encoded({"job": "mail", "args": {"to": "a"}, "key": "k-2"})
    yield varied(base, body=foreign, token="narrow", allowed=frozenset({403}))
    yield varied(
        base,
        target="/v1/jobs:batch",
        headers=[JSON, ("Idempotency-Key", "a")],
        body=b'{"jobs":[{"job":"pages"}]}',
    )
    for name in NAMES:
        checked = varied(base, target="/v1/jobs:validate", allowed=READ)
        if "\r" not in name and "\n" not in name:
            yield varied(checked, headers=[JSON, ("Idempotency-Key", name)], alone=True)
        yield varied(checked, body=encoded({"job": "pages", "args": {"path": "a"}, "key": name}))
    for other in ids.values():
        yield varied(
            base, body=encoded({"job": "pages", "args": {"path": "z"}, "id": other, "attempts_max": 0})
        )


def corpus(document: Document, ids: Mapping[str, str], offset: int = 0, apart: int = 1) -> Iterator[Case]:
    """All of it, or that of each so-many-th operation."""
    for each in islice(operations(document), offset, None, apart):
        yield from of_methods(each, list(document["paths"][each.path]))
        yield from of_paths(each)
        yield from of_tokens(each)
        yield from of_hosts(each)
        yield from of_headers(each)
        yield from of_queries(each)
        if each.body is not None:
            yield from of_media(each)
            yield from of_bodies(each)
            yield from of_fields(each)
    yield from of_cursors()
    yield from of_keys(ids)
    if apart == 1:
        yield from of_meanings(document)
    yield from of_mutations(2_000 // apart)
