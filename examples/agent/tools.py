"""The tools of the agent, and the shop that they act on: another system, with a file of its own."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Awaitable, Callable
from contextlib import closing
from dataclasses import dataclass
from typing import Any

SHOP = "AGENT_SHOP"  # the variable with the path of the shop's file


@dataclass(frozen=True)
class Tool:
    """A tool. `needs_approval`: a person must allow each use."""

    use: Callable[[str, dict[str, Any]], Awaitable[str]]
    needs_approval: bool = False


def shop() -> sqlite3.Connection:
    """The shop's own database."""
    made = sqlite3.connect(os.environ[SHOP], timeout=30)
    made.execute("CREATE TABLE IF NOT EXISTS payments (key TEXT PRIMARY KEY, number INTEGER, sum INTEGER)")
    return made


async def find_order(_key: str, args: dict[str, Any]) -> str:
    """What the shop knows of an order."""
    return json.dumps({"number": args["number"], "sum": 40, "note": "it came broken"})


async def pay_back(key: str, args: dict[str, Any]) -> str:
    """Pays money back: once for each key, however often it is asked."""
    with closing(shop()) as connection, connection:
        connection.execute(
            "INSERT OR IGNORE INTO payments VALUES (?, ?, ?)", (key, args["number"], args["sum"])
        )
    return f"paid {args['sum']} EUR"


TOOLS = {"find_order": Tool(find_order), "pay_back": Tool(pay_back, needs_approval=True)}
