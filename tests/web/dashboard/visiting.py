"""Visits of the dashboard: each page is looked at for what all pages promise, above all what it has cost."""

from __future__ import annotations

import re
from dataclasses import dataclass
from html.parser import HTMLParser

import httpx
from starlette.requests import Request

from fencerow.web.dashboard.cost import ROWS_MAX, STATEMENTS_MAX
from fencerow.web.dashboard.roles import Role, Visitor

COST = re.compile(r'db;desc="(\d+) statements, (\d+) rows"')
# What of a page a browser would run or load, and where addresses stand.
RUNS = re.compile(r"on[a-z]+$|style$|srcdoc$|hx-on.*$")
ADDRESSES = {"href", "src", "action", "formaction", "sse-connect", "hx-get", "hx-post"}


@dataclass
class Doorkeeper:
    """A host's `authorize`: every visitor is this one until a test says otherwise."""

    role: Role
    name: str = "mara"

    async def __call__(self, _request: Request) -> Visitor:
        return Visitor(self.name, self.role)


class Reader(HTMLParser):
    """The tags of a page, its text, and its forms."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str]]] = []
        self.texts: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, {name: value or "" for name, value in attrs}))

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    @property
    def text(self) -> str:
        """What a person reads, with one space between words."""
        return " ".join(" ".join(self.texts).split())

    def values(self, name: str) -> list[str]:
        """What the fields of this name hold."""
        return [found["value"] for tag, found in self.tags if tag == "input" and found.get("name") == name]


class Visits:
    """One browser."""

    def __init__(self, client: httpx.AsyncClient, base: str = "") -> None:
        self.client = client
        self.base = base

    async def see(self, path: str, *, status: int = 200, statements_max: int = STATEMENTS_MAX) -> Reader:
        """A page. It keeps to its ceiling, and a browser runs nothing of it but our files."""
        answer = await self.client.get(self.base + path, headers={"sec-fetch-site": "same-origin"})
        assert answer.status_code == status, Reader(answer.text).text
        found = self.read(answer)
        cost = COST.search(answer.headers.get("server-timing", ""))
        assert status != 200 or cost is not None
        if cost is not None:
            assert int(cost[1]) <= statements_max and int(cost[2]) <= ROWS_MAX, answer.headers[
                "server-timing"
            ]
        return found

    def read(self, answer: httpx.Response) -> Reader:
        """The page of an answer, looked at."""
        assert "default-src 'none'" in answer.headers["content-security-policy"]
        found = Reader(answer.text)
        for tag, attributes in found.tags:
            assert tag not in ("style", "iframe", "object", "embed", "base"), tag
            assert tag != "script" or attributes.get("src", "").startswith(f"{self.base}/static/"), attributes
            assert not any(RUNS.match(name) for name in attributes), (tag, attributes)
            for name in ADDRESSES & attributes.keys():
                assert re.match(r"/(?!/)|#|\?", attributes[name]), (tag, attributes)
        return found

    async def press(self, path: str, *, back: str = "/", on: str = "/", **fields: str) -> Reader:
        """Press a button of a page of ours; returns the page that is shown then."""
        answer = await self.send(path, form=await self.token(on), back=back, **fields)
        assert answer.status_code == 303, Reader(answer.text).text
        return await self.see(answer.headers["location"].removeprefix(self.base))

    async def token(self, on: str = "/") -> str:
        """What the forms of a page send along."""
        answer = await self.client.get(self.base + on)
        found = Reader(answer.text).values("form")
        return found[0] if found else ""

    async def send(
        self, path: str, *, origin: str | None = "http://127.0.0.1", **fields: str
    ) -> httpx.Response:
        """A form as a browser sends it."""
        headers = {} if origin is None else {"origin": origin, "sec-fetch-site": "same-origin"}
        return await self.client.post(self.base + path, data=fields, headers=headers)
