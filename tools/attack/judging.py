"""Whether an answer may be given: no fault of the gateway, as its document says, and nothing told of what is inside."""

from __future__ import annotations

import re

import httpx

from tests.web.checked import Checked
from tools.attack.case import Case
from tools.attack.described import Document
from tools.attack.wire import Answer

# What the server below the gateway says of what is no HTTP; or it hangs up.
BELOW = frozenset({0, 400})
COSTS_THE_CONNECTION = frozenset({"headers", "host", "smuggling", "no HTTP", "method"})
INSIDE = re.compile(rb'Traceback \(most|File "|site-packages|psycopg|sqlite3\.|/usr/|/tmp/|msgspec\.|asyncio')


class _Told(httpx.AsyncBaseTransport):
    """Gives the answer that came over the wire."""

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        answer: Answer = request.extensions["answer"]
        return httpx.Response(answer.status, headers=answer.headers, content=answer.body)


class Judge:
    """Compares answers with the document."""

    def __init__(self, document: Document) -> None:
        self._checked = Checked(_Told(), document)

    async def fault(self, case: Case, answer: Answer) -> str | None:
        """What is wrong with this answer; None: nothing is."""
        if found := INSIDE.search(answer.body):
            return f"the answer tells {found[0]!r} of the inside"
        if not answer.by_the_gateway:
            costs = answer.status in BELOW and case.group in COSTS_THE_CONNECTION
            return None if costs else f"{answer.status} was answered, not by the gateway"
        if answer.status not in case.allowed:
            return f"{answer.status} was answered: {answer.body[:300]!r}"
        if case.raw is not None:
            return None  # which request was read from it, nobody can say
        try:
            await self._checked.handle_async_request(_as_asked(case, answer))
        except AssertionError as error:
            return str(error)
        return None


def _as_asked(case: Case, answer: Answer) -> httpx.Request:
    known = case.method if case.method.isupper() and case.method.isalpha() else "UNKNOWN"
    path = case.target.partition("?")[0].replace(".", "%2e")  # or it would be resolved
    return httpx.Request(known, f"http://127.0.0.1{path}", extensions={"answer": answer})
