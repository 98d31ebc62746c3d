"""A worker that delivers webhooks, in a process of its own that may be killed."""

from __future__ import annotations

import asyncio

from tests.web.webhooks.stage import app_at


def work(url: str, receiver_url: str) -> None:
    """Run a worker until this process is killed."""
    asyncio.run(app_at(url, receiver_url).worker().run())
