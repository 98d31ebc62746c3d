"""A shop whose orders can be undone: what was done and undone, in order."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import pytest

from fencerow import App, Fail, Job
from tests.events.conftest import app_on
from tests.kit.jobs import AnyEngine


class Receipt(msgspec.Struct):
    """What a step returns, and its undo takes."""

    number: int


class Shop:
    """`order` charges and packs, and then fails, asks, sleeps or ends well, as its word says."""

    def __init__(self, app: App) -> None:
        self.app = app
        self.heard: list[str] = []
        self.refuses = 0  # so often an undo fails

        async def charge(number: int) -> Receipt:
            self.heard.append(f"charge {number}")
            return Receipt(number)

        async def pack() -> str:
            self.heard.append("pack")
            return "box 7"

        async def refund(receipt: Receipt) -> None:
            if self.refuses:
                self.refuses -= 1
                raise RuntimeError("the bank does not answer")
            self.heard.append(f"refund {receipt.number}")

        def unpack(box: str) -> None:
            self.heard.append(f"unpack {box}")

        async def book(_connection: object, number: int) -> Receipt:
            self.heard.append(f"book {number}")
            return Receipt(number)

        def unbook(booked: Receipt) -> None:
            self.heard.append(f"unbook {booked.number}")

        async def stranger(_: Receipt) -> None: ...

        @app.job(attempts_max=1)
        async def order(job: Job, word: str) -> str:
            await job.step("charge", charge, 5, undo=stranger if word == "stranger" else refund)
            if word == "inside":
                async with job.transaction():
                    await job.step("pack", pack, undo=unpack)
            await job.step("pack", pack, undo=unpack)
            if word == "book":
                await job.step_in_transaction("book", book, 9, undo=unbook)
                raise Fail("out of stock")
            if word == "ask":
                told = await job.wait_for("told")
                self.heard.append(f"told {told['yes']}")
                raise Fail("no")
            if word == "fail":
                raise Fail("out of stock")
            if word == "sleep":
                await job.sleep(3600)
            return word

        self.order, self.refund, self.unpack = order, refund, unpack
        self.undo = app.saga(order, undo=[refund, unpack, unbook], attempts_max=1)


@pytest.fixture
def shop(engine: AnyEngine) -> Iterator[Shop]:
    with app_on(engine) as app:
        yield Shop(app)
