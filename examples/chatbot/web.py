"""JSON over HTTP with the standard library. What is no 2xx is raised: nothing here swallows an error."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from urllib.request import ProxyHandler, Request, build_opener

TIMEOUT_S = 10.0
_opener = build_opener(ProxyHandler({}))


def post(url: str, data: Mapping[str, Any], *, key: str | None = None) -> Any:
    """POST a document and return the answer's. `key` lets the other side recognize a repetition.

    Raises:
        urllib.error.HTTPError: it answered, with an error; `code` says which.
        OSError: there was no answer. It may have happened or not: repeat it under the same key.
    """
    headers = {"Content-Type": "application/json"} | ({"Idempotency-Key": key} if key else {})
    request = Request(url, json.dumps(data).encode(), headers, method="POST")  # noqa: S310 (from our settings)
    with _opener.open(request, timeout=TIMEOUT_S) as answer:
        return json.load(answer)


def get(url: str) -> Any:
    """GET a document."""
    with _opener.open(url, timeout=TIMEOUT_S) as answer:
        return json.load(answer)
