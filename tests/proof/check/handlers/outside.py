"""What the handlers ask of other systems. A check puts a fake in its place."""

from __future__ import annotations


def charge(order: int, key: str | None = None) -> str:
    """Charge a card; a key makes a repeated call harmless."""
    raise ConnectionError(f"order {order} would really be charged under {key}")


def look_up(order: int) -> str:
    """Ask something; to ask again does no harm."""
    raise ConnectionError(f"order {order} would really be looked up")
