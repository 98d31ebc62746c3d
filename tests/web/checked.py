"""Holds every answer of a gateway against its own OpenAPI document: status, type, JSON, and the code of a refusal."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import httpx
from jsonschema import Draft202012Validator

from fencerow.web.gateway.asgi import Gateway

PROBLEM = "application/problem+json"
UNROUTED = (404, 405)
WITH_SLASHES = ("/v1/jobs/{id}/signals/{name}",)
_documents: dict[object, Mapping[str, Any]] = {}
_validators: dict[tuple[int, str], Draft202012Validator] = {}  # by a document above, and what the schema says


def document_of(gateway: Gateway) -> Mapping[str, Any]:
    """One for all gateways that have the same routes: to make it took more than a third of most tests."""
    routes = tuple((each.method, each.path, each.name, each.body) for each in gateway.routes)
    if routes not in _documents:
        _documents[routes] = gateway.openapi
    return _documents[routes]


class Checked(httpx.AsyncBaseTransport):
    """Passes requests on, and each answer back when it is one that the document tells of."""

    def __init__(
        self, inner: httpx.AsyncBaseTransport, document: Mapping[str, Any], *, base: str = ""
    ) -> None:
        """`document` is kept for as long as the process lives."""
        self._inner = inner
        self._base = base  # below which the gateway is mounted
        self._document = document
        # The longest first: `/v1/jobs:batch` is no job of this id.
        self._paths = [(_pattern(path), path) for path in sorted(document["paths"], key=_rank)]

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        answer = await self._inner.handle_async_request(request)
        operation = self._operation(request)
        declared = self._declared(request, answer, operation)
        assert answer.status_code != 500, f"{_about(request, answer)}: a fault of the gateway"
        media = answer.headers.get("content-type", "").partition(";")[0]
        assert answer.headers["x-request-id"], "every answer names its request"
        if "content" not in declared:
            assert not media and not await answer.aread(), _about(request, answer)
            return answer
        assert media in declared["content"], f"{_about(request, answer)}: {media!r} is not declared"
        if not media.endswith("json"):
            return answer
        content = await answer.aread()
        if request.method != "HEAD":
            self._check(request, answer, declared, media)
        if operation is not None and answer.status_code < 300:
            self._check_request(request, operation)
        return httpx.Response(
            answer.status_code, headers=answer.headers, content=content, extensions=answer.extensions
        )

    async def aclose(self) -> None:
        await self._inner.aclose()

    def _operation(self, request: httpx.Request) -> Mapping[str, Any] | None:
        path = request.url.path.removeprefix(self._base)
        found = next((each for pattern, each in self._paths if pattern.fullmatch(path)), None)
        method = "get" if request.method == "HEAD" else request.method.lower()
        operation: Mapping[str, Any] | None = self._document["paths"].get(found, {}).get(method)
        return operation

    def _declared(
        self, request: httpx.Request, answer: httpx.Response, operation: Mapping[str, Any] | None
    ) -> Mapping[str, Any]:
        if operation is None:
            assert answer.status_code in UNROUTED, _about(request, answer)
            assert (answer.status_code == 405) == ("allow" in answer.headers), _about(request, answer)
            return {"content": {PROBLEM: {"schema": {"$ref": "#/components/schemas/Problem"}}}}
        declared: Mapping[str, Any] | None = operation["responses"].get(str(answer.status_code))
        assert declared is not None, f"{_about(request, answer)}: this status is not declared"
        return declared

    def _check(
        self, request: httpx.Request, answer: httpx.Response, declared: Mapping[str, Any], media: str
    ) -> None:
        told = answer.json()
        self._validate(told, declared["content"][media]["schema"], _about(request, answer))
        if media == PROBLEM:
            assert told["status"] == answer.status_code
            codes = declared.get("x-codes", ["FR-872"])
            assert told["code"] in codes, f"{_about(request, answer)}: {told} is not among {codes}"
            assert "Traceback" not in answer.text

    def _check_request(self, request: httpx.Request, operation: Mapping[str, Any]) -> None:
        """What was taken fits what the document says is taken."""
        if "requestBody" in operation and request.content:
            schema = operation["requestBody"]["content"]["application/json"]["schema"]
            self._validate(
                httpx.Response(200, content=request.content).json(), schema, f"{request.url} takes"
            )

    def _validate(self, told: Any, schema: Mapping[str, Any], about: str) -> None:
        place = (id(self._document), repr(schema))
        if (validator := _validators.get(place)) is None:
            whole = {**schema, "components": self._document["components"]}
            validator = _validators[place] = Draft202012Validator(whole)
        found = sorted(validator.iter_errors(told), key=str)
        assert not found, f"{about}: {found[0].json_path}: {found[0].message}"


def _about(request: httpx.Request, answer: httpx.Response) -> str:
    return f"{request.method} {request.url.path} answered {answer.status_code}"


def _pattern(path: str) -> re.Pattern[str]:
    parts = re.split(r"\{\w+\}", path)
    text = "[^/]+".join(map(re.escape, parts))
    # Servers tell the path decoded: here the last name may have slashes.
    return re.compile(text.removesuffix("[^/]+") + ".+" if path in WITH_SLASHES else text)


def _rank(path: str) -> tuple[int, int]:
    return (path.count("{"), -len(path))
