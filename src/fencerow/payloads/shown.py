"""What people are shown in the place of a payload that is sealed, or that lies outside the database."""

from __future__ import annotations

from typing import Any


def told_of(value: Any) -> str | None:
    """What people are shown of a stored payload that was read as JSON, if it is sealed or lies outside the database;
    None: show it as it is."""
    if not isinstance(value, dict):
        return None
    sealed, outside = value.get("fencerow:sealed"), value.get("fencerow:outside")
    if isinstance(outside, dict) and {"name", "bytes"} <= outside.keys():
        under = f", under the key {outside['key']}" if outside.get("key") else ""
        return f"({outside['bytes']} bytes outside the database: {outside['name']}{under})"
    return f"(sealed under the key {sealed['key']})" if isinstance(sealed, dict) and "key" in sealed else None
