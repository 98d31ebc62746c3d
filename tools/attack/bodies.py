"""Bad bodies, for each operation that takes one."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from typing import Any

from tools.attack.case import JSON, NOBODY_ID, READ, Case, encoded, varied
from tools.attack.described import Document, Operation, operations
from tools.attack.words import NAMES, RAW_VALUES, VALUES, broken

MEDIA = (
    *(
        "",
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=a",
        "application/xml",
        "json",
    ),
    *(
        "application/json; charset=utf-16",
        "application/json; charset=latin-1",
        "application/jsonx",
        "application/json;;;x",
    ),
    *(
        "application/json, text/plain",
        "APPLICATION/",
        "*/*",
        "application/*",
        "application/json" + ";a=b" * 200,
        "text/json",
    ),
    *(
        "application/octet-stream",
        "application/json; charset",
        "application/yaml",
        "image/svg+xml",
        "application/msgpack",
    ),
)
CODINGS = ("gzip", "deflate", "br", "zstd", "identity, gzip", "gzip, gzip", "x", "compress", "GZIP", "*")


def of_media(each: Operation) -> Iterator[Case]:
    """Bodies that say they are something else."""
    body = encoded(each.example())
    base = Case("media", each.method.upper(), each.target(NOBODY_ID), body=body, allowed=frozenset({415}))
    yield base
    yield varied(base, headers=[JSON, JSON])
    yield from (varied(base, headers=[("Content-Type", media)]) for media in MEDIA)
    yield from (varied(base, headers=[JSON, ("Content-Encoding", coding)]) for coding in CODINGS)


def of_bodies(each: Operation) -> Iterator[Case]:
    """What is no JSON, and JSON that is no request."""
    base = Case("json", each.method.upper(), each.target(NOBODY_ID), headers=[JSON])
    yield from (varied(base, body=body) for body in broken())
    yield varied(base, body=b" " * (1024 * 1024 + 1), alone=True)


def of_fields(each: Operation) -> Iterator[Case]:
    """Each field of the wrong type or written so that readers differ, none at all, and fields that nobody knows."""
    example = each.example()
    base = Case("field", each.method.upper(), each.target(NOBODY_ID), headers=[JSON])
    for path, schema in _places(each, each.body or {}):
        fitting = each.validator(schema)
        for value in VALUES:
            if not fitting.is_valid(value):
                yield varied(base, body=encoded(_put(example, path, value)))
        for raw in RAW_VALUES:
            marked = encoded(_put(example, path, "<here>"))
            yield varied(base, body=marked.replace(b'"<here>"', raw, 1))
    for name in NAMES:
        yield varied(base, group="unknown field", body=encoded({**example, f"{name} ": 1}))
    for name in each.resolved(each.body or {}).get("required", ()):
        yield varied(base, body=encoded({key: example[key] for key in example if key != name}))


def of_meanings(document: Document) -> Iterator[Case]:
    """Values that fit the document and mean nothing, in each option of a submit: asked about, not stored."""
    check = next(each for each in operations(document) if each.path == "/v1/jobs:validate")
    base = Case("meaning", "POST", check.path, headers=[JSON], allowed=READ)
    example = check.example()
    for path, schema in _places(check, check.body or {}):
        fitting = check.validator(schema)
        for value in (*VALUES, *NAMES):
            if fitting.is_valid(value):
                yield varied(base, body=encoded(_put(example, path, value)))


def of_mutations(count: int, seed: int = 30) -> Iterator[Case]:
    """Good bodies with a few bytes drawn anew, cut off or doubled."""
    drawn = random.Random(seed)
    base = Case("mutation", "POST", "/v1/jobs:validate", headers=[JSON], allowed=READ)
    whole = encoded(
        {
            "job": "pages",
            "args": {"path": 'é\\n"', "copies": -1.5e3},
            "unique": {"by": "a", "states": ["queued"]},
            "tags": [],
        }
    )
    for _ in range(count):
        body = bytearray(whole)
        for _ in range(drawn.randint(1, 4)):
            at = drawn.randrange(len(body))
            body[at : at + drawn.randint(0, 3)] = drawn.choice(
                (
                    drawn.randbytes(1),
                    b"",
                    b'"',
                    b"{",
                    b"[",
                    b"\\u0000",
                    b"1e999",
                    b"null",
                    bytes(body[at:]),
                    b",",
                    b"\xff",
                )
            )
        yield varied(base, body=bytes(body))


def _places(
    each: Operation, schema: Mapping[str, Any]
) -> Iterator[tuple[tuple[str, ...], Mapping[str, Any]]]:
    """Each field of an object, and of the objects in it, with its schema."""
    whole = each.resolved(schema)
    for name, inner in whole.get("properties", {}).items():
        yield (name,), inner
        for choice in (inner, *inner.get("anyOf", ())):
            found = each.resolved(choice)
            if found.get("type") == "object" and "properties" in found:
                yield from (((name, *path), below) for path, below in _places(each, found))


def _put(example: Any, path: tuple[str, ...], value: Any) -> Any:
    name, *rest = path
    below = _put({}, tuple(rest), value) if rest else value
    return {**example, name: below}
