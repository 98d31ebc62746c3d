"""Instants and lengths of time as the database has them."""

from __future__ import annotations

from datetime import UTC, datetime


def utc(*parts: int) -> int:
    year, month, day, *rest = parts
    return us(datetime(year, month, day, *rest, tzinfo=UTC).timestamp())  # type: ignore[arg-type,misc]


def us(seconds: float) -> int:
    return round(seconds * 1_000_000)
