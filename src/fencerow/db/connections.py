"""How many connections to PostgreSQL one process opens at most, by what they are for.

The numbers are what `Pools` enforces; `docs/postgresql.md` has them as a table, and tests count them under load.
"""

from __future__ import annotations

from collections.abc import Mapping

from fencerow.db.text import amount


def shares(pool_max: int) -> tuple[int, int]:
    """How a pool's connections are shared out: for our own statements, and for the users' transactions."""
    users = max(1, pool_max // 2)
    return max(1, pool_max - users), users


def of_worker(pool_max: int, *, plain: bool) -> Mapping[str, int]:
    """Of a worker process. `plain`: some handlers are plain functions, whose threads have pools of their own."""
    ours, users = shares(pool_max)
    always = {"claims and outcomes": ours, "transactions": users, "wake-ups": 1, "keeper": 1, "listen": 1}
    return always | ({"plain handlers": ours + users - 1} if plain else {})


def of_client(pool_max: int, *, plain: bool) -> Mapping[str, int]:
    """Of a process that submits and waits. `plain`: from threads; else from one event loop."""
    ours, _ = shares(pool_max)
    return {"statements": ours, "listen": 1} | ({} if plain else {"wake-ups": 1})


def told(connections: Mapping[str, int]) -> str:
    """The numbers in words, for the log."""
    parts = ", ".join(f"{count} {use}" for use, count in connections.items())
    return f"{amount(sum(connections.values()), 'connection')} ({parts})"
