"""Waits of an event loop that have an end."""

from __future__ import annotations

import asyncio


async def set_within(event: asyncio.Event, limit_s: float | None) -> bool:
    """Wait until the event is set, for so long at most; None: without a limit. Returns whether it was set."""
    try:
        async with asyncio.timeout(limit_s):
            await event.wait()
    except TimeoutError:
        return False
    return True
