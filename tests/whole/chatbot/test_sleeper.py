"""A worker that sleeps through its leases in the middle of a broadcast, and wakes up when another has done its work."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from examples.chatbot.show import QUEUES, SERVICE
from examples.stage import worker
from tests.kit.pace import PATIENCE_S, slower
from tests.whole.chatbot.conftest import Chatbot

RECIPIENTS = 40
SENDING = 4
LOOK_S = 0.2  # between two looks, each of which connects to the database
# One lease must end while the test looks on, and nobody else may lose its own.
SHORT = {
    "lease_s": f"{slower(4.0)}",
    "renew_s": "0.3",
    "sweep_s": "0.2",
    "prefetch_s": "0",
    "poll_max_s": "1",
}


@pytest.fixture
def short_leases(chatbot: Chatbot, monkeypatch: pytest.MonkeyPatch) -> None:
    """For the worker processes; ours keeps what it has read."""
    for name, value in SHORT.items():
        monkeypatch.setenv(f"FENCEROW_{name.upper()}", value)


@pytest.mark.prove
@pytest.mark.parametrize("databases", ["postgres"], indirect=True)
@pytest.mark.usefixtures("short_leases")
async def test_a_sleeper_changes_nothing_when_it_wakes_up(chatbot: Chatbot, tmp_path: Path) -> None:
    """On PostgreSQL: a SQLite file has one writer, and one that is stopped within a commit keeps everybody out."""
    world, broadcast = chatbot.world, chatbot.broadcast
    world.unanswered_after = 20 - SENDING
    for number in range(SENDING):
        addresses = [f"+49{number}{each}" for each in range(RECIPIENTS // SENDING)]
        broadcast.start(f"spring {number}", "harbour", "Hello", addresses)

    def ledger() -> list[object]:
        return chatbot.rows("SELECT id, state, claims, message FROM recipients ORDER BY id")

    with worker(SERVICE, QUEUES, "sleeper", tmp_path) as sleeper:
        await until(lambda: len(world.delivered) == 20)
        os.kill(sleeper.pid, signal.SIGSTOP)
        world.change({"unanswered_after": None})
        try:
            with worker(SERVICE, QUEUES, "other", tmp_path):
                await until(lambda: all(row[1] == "sent" for row in ledger()))  # type: ignore[index]
            done = ledger()
        finally:
            os.kill(sleeper.pid, signal.SIGCONT)
        log = tmp_path / "sleeper.log"
        await until(lambda: log.read_text().count("is over for us") + log.read_text().count("lost") > 0)

    assert ledger() == done
    assert len(world.delivered) == RECIPIENTS
    assert world.repeated == SENDING


async def until(happened: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not happened():
            await asyncio.sleep(LOOK_S)
