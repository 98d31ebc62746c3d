"""Answers and refusals of the gateway as they go out over HTTP."""

from __future__ import annotations

import logging
from types import MappingProxyType

import msgspec
from starlette.responses import Response, StreamingResponse

from fencerow.core.errors import FencerowError
from fencerow.web.errors import TooManyRequests, UnderMaintenance, Unready
from fencerow.web.gateway.problem import CONTENT_TYPE, problem_of, retry_after_of
from fencerow.web.gateway.route import Answer, Origin

log = logging.getLogger("fencerow.web")

# No answer of the gateway is a page: nothing in it may be run, framed, guessed at or kept by a proxy.
ALWAYS = MappingProxyType(
    {
        "cache-control": "no-store",
        "x-content-type-options": "nosniff",
        "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
        "referrer-policy": "no-referrer",
    }
)


def response_of(answer: Answer, origin: Origin, *, only_head: bool = False) -> Response:
    """An answer on its way out. The server keeps the body of a HEAD back; a stream would last all the same."""
    headers = {**ALWAYS, "x-request-id": origin.request_id, **answer.headers}
    if answer.content is not None and not isinstance(answer.content, bytes):
        if only_head:
            response = Response(b"", answer.status, headers, answer.content_type)
            del response.headers["content-length"]  # a stream has none
            return response
        return StreamingResponse(answer.content, answer.status, headers, answer.content_type)
    content = answer.content
    if content is None:
        content = b"" if answer.document is None else msgspec.json.encode(answer.document)
    media = answer.content_type if content else None
    return Response(content, answer.status, headers, media)


def refusal_of(error: Exception, origin: Origin, name: str) -> Response:
    """What is answered for an error. What is no error of ours is told to the log alone."""
    if not isinstance(error, FencerowError):
        log.error(
            "route %s met %s (request %s)", name, type(error).__name__, origin.request_id, exc_info=error
        )
        error = FencerowError("the gateway met a fault of its own")
    document = problem_of(error, origin.request_id)
    if document.status >= 500 and not isinstance(error, (Unready, UnderMaintenance, TooManyRequests)):
        log.warning("request %s to %s: %s", origin.request_id, name, error)
    headers = {**ALWAYS, "x-request-id": origin.request_id}
    if (wait_s := retry_after_of(error, document.status)) is not None:
        headers["retry-after"] = str(wait_s)
    if document.status == 401:
        headers["www-authenticate"] = 'Bearer realm="fencerow"'
    if getattr(error, "closes", False):
        headers["connection"] = "close"
    return Response(msgspec.json.encode(document), document.status, headers, CONTENT_TYPE)
