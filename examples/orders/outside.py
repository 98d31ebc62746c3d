"""What the shop asks of the world outside: payments over HTTP, and mails."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import httpx

PAYMENTS_URL = os.environ.get("PAYMENTS_URL", "http://127.0.0.1:8001")
TLS = httpx.create_ssl_context()  # made once: that is slow
MAILS = Path(os.environ.get("ORDERS_MAILS", "mails.txt"))


class Declined(Exception):
    """The provider has said no, and will say no again."""


async def pay(what: str, order_id: str, cents: int) -> str:
    """Ask the provider for something, once for each order: the key makes it safe to ask again."""
    async with httpx.AsyncClient(base_url=PAYMENTS_URL, verify=TLS, timeout=30) as provider:
        answer = await provider.post(
            f"/{what}",
            json={"order": order_id, "cents": cents},
            headers={"Idempotency-Key": f"{what}-{order_id}"},
        )
    if answer.status_code == 402:
        raise Declined(order_id)
    answer.raise_for_status()  # a 5xx is tried again, by the job's own rule
    payment: str = answer.json()["id"]
    return payment


async def post_mail(to: str, subject: str) -> str:
    """Where a real shop asks its mail provider, this one writes a line."""
    await asyncio.to_thread(_write, f"{to}: {subject}\n")
    return subject


def _write(line: str) -> None:
    with MAILS.open("a", encoding="utf-8") as mails:
        mails.write(line)
