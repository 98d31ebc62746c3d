"""The OpenAPI 3.1 document of the gateway, made from the table of its routes and the types they name."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from http import HTTPStatus
from typing import Any

import msgspec

from fencerow.core.errors import FencerowError, InvalidInput
from fencerow.version import __version__
from fencerow.web.errors import (
    InvalidRequest,
    NotAllowed,
    NotAuthenticated,
    RequestTooLarge,
    RequestTooSlow,
    TooLate,
    TooManyRequests,
    UnderMaintenance,
    Unready,
    UnsupportedBody,
)
from fencerow.web.gateway.problem import CONTENT_TYPE, OF_DATABASE, Problem, status_of_type
from fencerow.web.gateway.route import Route

REF = "#/components/schemas/{name}"
PARAMETER = re.compile(r"\{(\w+)\}")
Refusal = tuple[type[FencerowError], int]
# What reading a request may end in. Some errors come with several statuses.
ANY_REQUEST: Sequence[Refusal] = (
    (InvalidRequest, 400),
    (InvalidRequest, 421),
    (InvalidInput, 422),
    (TooManyRequests, 429),
    (RequestTooLarge, 431),
    (TooManyRequests, 503),
)
WITH_BODY: Sequence[Refusal] = ((RequestTooSlow, 408), (RequestTooLarge, 413), (UnsupportedBody, 415))
NULL: Mapping[str, Any] = {"type": "null"}
INT32_MAX, INT64_MAX = 2**31 - 1, 2**63 - 1
WITH_SCOPE = (NotAuthenticated, NotAllowed, InvalidInput, Unready, TooLate, *OF_DATABASE)
ANY: Mapping[str, Any] = {"description": "any JSON value"}


def document(routes: Sequence[Route]) -> dict[str, Any]:
    """The document."""
    types = _types(routes)
    schemas, components = msgspec.json.schema_components(types, ref_template=REF)
    of_type = dict(zip(types, schemas, strict=True))
    paths: dict[str, Any] = {}
    for route in routes:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, of_type)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Fencerow",
            "version": __version__,
            "description": "Durable jobs over HTTP. Every error is a problem document with a stable code.",
        },
        "paths": paths,
        "components": {
            "schemas": _explicit(components),
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _explicit(told: Any) -> Any:
    """The same, where generators of clients need not guess: a choice of texts is text, an object whose fields are not
    said may have any, and a number may need 64 bits. Without that, one takes a choice for anything, another such an
    object for an empty one, and a third reads numbers in 32 bits."""
    if isinstance(told, list):
        return [_explicit(each) for each in told]
    if not isinstance(told, dict):
        return told
    said = {name: _explicit(each) for name, each in told.items()}
    choice = said.get("enum")
    if isinstance(choice, list) and all(isinstance(each, str) for each in choice):
        said.setdefault("type", "string")
    if said.get("type") == "object" and "properties" not in said:
        said.setdefault("additionalProperties", True)
    if said.get("type") == "integer" and said.get("maximum", INT64_MAX) > INT32_MAX:
        said.setdefault("format", "int64")
    return _nullable(said)


def _nullable(said: dict[str, Any]) -> dict[str, Any]:
    """Where it is one type or null, both said in `type`: of `anyOf` a generator for Go makes a type of its own, or
    takes for nullable whatever else looks like it."""
    types = said.get("anyOf")
    if not isinstance(types, list) or len(types) != 2 or NULL not in types:
        return said
    other = next(each for each in types if each != NULL)
    if not isinstance(other.get("type"), str):
        return said
    told = {**other, **said, "type": [other["type"], "null"]}
    del told["anyOf"]
    return told | ({"enum": [*told["enum"], None]} if "enum" in told else {})


def _never_null(said: dict[str, Any]) -> dict[str, Any]:
    """A parameter of a query is there or it is not: a generator for Go sent the text `null` for one that is not."""
    told = {name: each for name, each in said.items() if (name, each) != ("default", None)}
    if isinstance(kinds := told.get("type"), list):
        told["type"] = next(each for each in kinds if each != "null")
    if "enum" in told:
        told["enum"] = [each for each in told["enum"] if each is not None]
    return told


def _types(routes: Iterable[Route]) -> list[type]:
    found: dict[type, None] = {Problem: None}
    for route in routes:
        for each in (route.body, *route.answers.values()):
            if each is not None:
                found[each] = None
    return list(found)


def _operation(route: Route, schemas: Mapping[type, Any]) -> dict[str, Any]:
    said = _plain(route.answer.__doc__)
    operation: dict[str, Any] = {
        "operationId": route.name,
        "tags": [route.tag],
        "summary": _sentence(said),
        "description": said,
        "parameters": [*_in_path(route), *_in_query(route), *_in_headers(route)],
        "responses": {
            **{str(status): _answer(route, status, kind, schemas) for status, kind in route.answers.items()},
            **_refusals(_met(route), schemas),
        },
    }
    if _has_body(route):
        schema = ANY if route.body is None else schemas[route.body]
        operation["requestBody"] = {"required": True, "content": {"application/json": {"schema": schema}}}
    if route.scope is not None:
        operation["security"] = [{"token": []}]
        operation["x-scope"] = route.scope.value
    return operation


def _met(route: Route) -> Iterable[Refusal]:
    """What the route may be refused with."""
    yield from ANY_REQUEST
    yield from WITH_BODY if _has_body(route) else ()
    kinds = [*route.refusals]
    if route.scope is not None:
        kinds += WITH_SCOPE if route.in_maintenance else (*WITH_SCOPE, UnderMaintenance)
    for kind in kinds:
        yield kind, status_of_type(kind)
    for kind in route.missing:
        yield kind, int(HTTPStatus.NOT_FOUND)


def _has_body(route: Route) -> bool:
    return route.is_raw or route.body is not None


def _in_path(route: Route) -> Iterable[dict[str, Any]]:
    for name in PARAMETER.findall(route.path):
        yield {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}


def _in_query(route: Route) -> Iterable[dict[str, Any]]:
    (schema,), components = msgspec.json.schema_components([route.query], ref_template=REF)
    shape = components[schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema
    for name, each in shape.get("properties", {}).items():
        told = _never_null(_explicit(each))
        yield {"name": name, "in": "query", "required": name in shape.get("required", ()), "schema": told}


def _in_headers(route: Route) -> Iterable[dict[str, Any]]:
    for name, meaning in route.accepts.items():
        yield {"name": name, "in": "header", "schema": {"type": "string"}, "description": meaning}


def _answer(route: Route, status: int, kind: type | None, schemas: Mapping[type, Any]) -> dict[str, Any]:
    if status == HTTPStatus.NO_CONTENT:
        return {"description": "nothing is left to be told"}
    schema = ANY if kind is None else schemas[kind]
    said = "as asked" if kind is None else _sentence(kind.__doc__)
    return {"description": said, "content": {route.content_type: {"schema": schema}}}


def _refusals(refusals: Iterable[Refusal], schemas: Mapping[type, Any]) -> dict[str, Any]:
    by_status: dict[int, set[str]] = {}
    for kind, status in refusals:
        by_status.setdefault(status, set()).add(kind.code)
    content = {CONTENT_TYPE: {"schema": schemas[Problem]}}
    told: dict[str, Any] = {
        str(status): {
            "description": f"{HTTPStatus(status).phrase}: {', '.join(sorted(codes))}",
            "x-codes": sorted(codes),
            "content": content,
        }
        for status, codes in sorted(by_status.items())
    }
    return {**told, "default": {"description": "a fault of the gateway", "content": content}}


def _plain(doc: str | None) -> str:
    return " ".join((doc or "").split())


def _sentence(doc: str | None) -> str:
    return re.split(r"[.;:] ", _plain(doc) + " ")[0].rstrip(".")
