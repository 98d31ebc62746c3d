"""What a customer's program does, with the standard library only: documents go in, results come out."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass
from email.message import Message
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import ProxyHandler, Request, build_opener

WAIT_S = 30
NOT_READY = "FR-307"
ENDED = ("succeeded", "failed", "cancelled")
_opener = build_opener(ProxyHandler({}))


def two_stages(name: str, content: bytes, **refining: Any) -> dict[str, Any]:
    """A document as it is posted: two stages, of which each has its own attempts, time limit and error."""
    args = {"name": name, "content": base64.b64encode(content).decode()}
    fields = {"name": "fields", "job": "extract", "args": args, "stage": True}
    places = {"name": "places", "job": "refine", "args": refining, "needs": ["fields"], "stage": True}
    return {"name": "document", "jobs": [fields, places]}


class Refused(Exception):
    """The gateway's answer is no success; `code` is stable, and docs/errors.md has a paragraph for each."""

    def __init__(self, status: int, document: dict[str, Any]) -> None:
        super().__init__(f"{status} {document['code']}: {document['detail']}")
        self.status, self.code, self.where = status, document["code"], document.get("where", "")


@dataclass
class Customer:
    """Somebody with a token, at a gateway."""

    url: str
    token: str

    def submit(self, key: str, document: dict[str, Any]) -> str:
        """Post a document, as often as need be: one key is one document. Returns its address."""
        return str(self._ask("POST", "/v1/flows", document, {"Idempotency-Key": f'"{key}"'})["url"])

    def result(self, address: str, stage: str) -> Any:
        """The newest result once this stage has ended: of the stage before it, if it failed. It waits as long as it
        takes, by one long poll after the other."""
        path = f"{address}/result?{urlencode({'wait_for': stage, 'wait': WAIT_S})}"
        while True:
            try:
                found, headers = self._answer("GET", path)
                if headers["Fencerow-Stage"] in ENDED:
                    return found
            except Refused as refused:
                if refused.code != NOT_READY:
                    raise

    def stages(self, address: str) -> dict[str, str]:
        """How each stage stands."""
        return {each["name"]: each["state"] for each in self._ask("GET", f"{address}/jobs")["jobs"]}

    def cancel(self, address: str) -> Any:
        """Let it be done no more."""
        return self._ask("DELETE", address)

    def _ask(self, method: str, path: str, *given: Any) -> Any:
        return self._answer(method, path, *given)[0]

    def _answer(
        self, method: str, path: str, document: Any = None, more: Mapping[str, str] | None = None
    ) -> tuple[Any, Message]:
        headers = {
            "Authorization": f"Bearer {self.token}",
            "Content-Type": "application/json",
            **(more or {}),
        }
        body = None if document is None else json.dumps(document).encode()
        request = Request(self.url + path, body, headers, method=method)  # noqa: S310 (from our settings)
        try:
            with _opener.open(request, timeout=2 * WAIT_S) as answer:
                return json.load(answer), answer.headers
        except HTTPError as error:
            with error:
                raise Refused(error.code, json.load(error)) from None
