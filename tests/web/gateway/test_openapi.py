"""The OpenAPI document: valid, complete, the same as the one that is kept; and who answers outside of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator

from fencerow.web.gateway.asgi import Gateway
from tests.house.tree import ROOT
from tests.web.gateway.conftest import Door

KEPT = ROOT / "docs" / "reference" / "openapi.json"


@pytest.fixture
def url(sqlite_path: Path) -> str:
    """The database does not matter here."""
    return f"sqlite:///{sqlite_path}"


async def test_the_document_is_valid_and_the_one_that_is_kept(http: httpx.AsyncClient) -> None:
    told = (await http.get("/openapi.json")).json()

    OpenAPIV31SpecValidator(told).validate()
    operations = [each for path in told["paths"].values() for each in path.values()]
    names = [each["operationId"] for each in operations]
    assert len(names) == len(set(names))
    assert all(each["summary"] and "401" in each["responses"] for each in operations if "security" in each)
    told["info"]["version"] = ""
    assert told == msgspec.json.decode(KEPT.read_bytes()), "`python -m tools.openapi` writes it"


async def test_it_leaves_generators_of_clients_nothing_to_guess(gateway: Gateway) -> None:
    """Else openapi-typescript makes an object without fields of the arguments of a job, and the generator for Go takes
    its name for nullable, reads numbers in 32 bits, sends the text `null` for a parameter that is not given, and takes
    all good answers of a route for the first one."""
    every = list(_objects(gateway.openapi))

    choices = [each for each in every if isinstance(each.get("enum"), list) and None not in each["enum"]]
    unions = [each["anyOf"] for each in every if isinstance(each.get("anyOf"), list)]
    objects = [each for each in every if each.get("type") == "object"]
    numbers = [each for each in every if each.get("type") == "integer" and each.get("maximum", 2**63) > 2**31]
    asked = [each["schema"] for each in every if each.get("in") == "query"]
    assert choices and all(each["type"] == "string" for each in choices)
    assert objects and all("properties" in each or "additionalProperties" in each for each in objects)
    assert numbers and all(each["format"] == "int64" for each in numbers)
    assert asked and not any(
        "null" in each.get("type", ()) or ("default" in each and each["default"] is None) for each in asked
    )
    answered = [each["responses"] for each in every if isinstance(each.get("responses"), Mapping)]
    good = [[told for status, told in each.items() if status[0] == "2"] for each in answered]
    shapes = [[told["content"] for told in each if "content" in told] for each in good]
    assert max(map(len, shapes)) > 1 and all(told == each[0] for each in shapes for told in each)
    assert unions and all("$ref" in some[0] for some in unions if {"type": "null"} in some)


def _objects(told: object) -> Iterator[Mapping[str, Any]]:
    if isinstance(told, Mapping):
        yield told
    if isinstance(told, Mapping | list):
        for each in told.values() if isinstance(told, Mapping) else told:
            yield from _objects(each)


@pytest.mark.parametrize(
    ("method", "path", "status", "allowed"),
    [
        ("GET", "/", 404, None),
        ("GET", "/v1/jobs/a/b", 404, None),
        ("GET", "/v1/jobs/x/", 404, None),
        ("PUT", "/v1/jobs/x", 405, {"GET", "HEAD", "DELETE", "PATCH"}),
        ("OPTIONS", "/v1/jobs:batch", 405, {"POST"}),
        ("TRACE", "/livez", 405, {"GET", "HEAD"}),
        ("GET", "/v1/jobs/x/revive", 405, {"POST"}),
        ("FETCH", "/openapi.json", 405, {"GET", "HEAD"}),
    ],
)
async def test_what_is_not_there_is_told_as_a_problem(
    http: httpx.AsyncClient, method: str, path: str, status: int, allowed: set[str] | None
) -> None:
    answer = await http.request(method, path)

    assert (answer.status_code, answer.json()["code"]) == (status, "FR-872")
    assert allowed is None or set(answer.headers["allow"].split(", ")) == allowed


async def test_a_parameter_that_nobody_knows_is_refused_as_told(
    http: httpx.AsyncClient, gateway: Gateway
) -> None:
    for route in gateway.routes:
        if route.scope is None:
            body: dict[str, object] | None = None if route.body is None else {}
            answer = await http.request(route.method, f"{route.path}?unknown=1", json=body)
            assert (answer.status_code, answer.json()["code"]) == (422, "FR-201")


async def test_head_is_answered_as_get_is(http: httpx.AsyncClient, gateway: Gateway) -> None:
    for path in ("/livez", "/readyz", "/openapi.json", "/v1/jobs/01900000-0000-7000-8000-000000000000"):
        assert (await http.head(path)).status_code == (await http.get(path)).status_code


async def test_whoever_is_nobody_is_told_the_same_of_every_route(
    http: httpx.AsyncClient, gateway: Gateway, door: Door
) -> None:
    door.grant = None
    guarded = [each for each in gateway.routes if each.scope is not None]

    for route in guarded:
        answer = await http.request(route.method, route.path.replace("{id}", "x"), json={"a": 1})
        assert (answer.status_code, answer.json()["code"]) == (401, "FR-870")

    assert len(guarded) >= 10
