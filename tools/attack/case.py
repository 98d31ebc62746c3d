"""One bad request, and what it may be answered."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

JSON = ("Content-Type", "application/json")
NOBODY_ID = "01900000-0000-7000-8000-000000000000"  # of a job that is not there
# A refusal of the caller. 503 says that a bound of the whole gateway was reached, which these requests do not do.
REFUSED = frozenset(range(400, 500))
READ = REFUSED | {200, 204}  # an odd question may have an answer: nothing is stored by it


@dataclass(frozen=True, slots=True)
class Case:
    """A request as it is written: `method`, `target` and `headers` go out as they stand, these after Host and token.

    `allowed`: what may be answered. `alone`: over a connection of its own, which it may cost. `raw`: bytes that are
    sent instead of all the rest.
    """

    group: str
    method: str
    target: str
    token: str | None = "all"
    headers: Sequence[tuple[str, str]] = ()
    body: bytes | None = None
    allowed: frozenset[int] = REFUSED
    host: str | None = "127.0.0.1"
    raw: bytes | None = None
    alone: bool = False

    def written(self, tokens: dict[str, str]) -> bytes:
        """Its bytes."""
        if self.raw is not None:
            return self.raw
        lines = [f"{self.method} {self.target} HTTP/1.1"]
        lines += [] if self.host is None else [f"Host: {self.host}"]
        lines += [] if self.token is None else [f"Authorization: Bearer {tokens[self.token]}"]
        lines += [f"{name}: {value}" for name, value in self.headers]
        lines += [] if self.body is None else [f"Content-Length: {len(self.body)}"]
        return "\r\n".join([*lines, "", ""]).encode("utf-8", "surrogatepass") + (self.body or b"")


def varied(case: Case, **fields: Any) -> Case:
    """The same, but for these fields."""
    return replace(case, **fields)


def encoded(value: Any) -> bytes:
    """As JSON."""
    return json.dumps(value).encode()
