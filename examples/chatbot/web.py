"""JSON over HTTP with the standard library. What is no 2xx is raised: nothing here swallows an error."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from urllib.error import HTTPError
from urllib.request import ProxyHandler, Request, build_opener

TIMEOUT_S = 10.0
_opener = build_opener(ProxyHandler({}))


class Refused(Exception):
    """The other side answered, and it was no success. Fencerow reads the status: 503 is tried again, 422 is not."""

    def __init__(self, status_code: int, url: str) -> None:
        super().__init__(f"{url} answered {status_code}")
        self.status_code = status_code


def post(url: str, data: Mapping[str, Any], *, key: str | None = None) -> Any:
    """POST a document and return the answer's. `key` lets the other side recognize a repetition.

    Raises:
        Refused: it answered, and said no.
        OSError: there was no answer. It may have happened or not: repeat it under the same key.
    """
    headers = {"Content-Type": "application/json"} | ({"Idempotency-Key": key} if key else {})
    request = Request(url, json.dumps(data).encode(), headers, method="POST")  # noqa: S310 (from our settings)
    return _answer_to(request)


def get(url: str) -> Any:
    """GET a document. Raises what `post` does."""
    return _answer_to(Request(url))  # noqa: S310


def _answer_to(request: Request) -> Any:
    try:
        with _opener.open(request, timeout=TIMEOUT_S) as answer:
            return json.load(answer)
    except HTTPError as error:
        with error:
            raise Refused(error.code, request.full_url) from None
