"""Each workspace has its pace: a broadcast that is over it waits without a slot, and slows nobody else."""

from __future__ import annotations

from itertools import pairwise

import pytest

from fencerow.core.model.job import JobRecord
from fencerow.limits import Limit, Rate
from tests.whole.chatbot.conftest import Chatbot

ON_BOTH = pytest.mark.parametrize("databases", ["sqlite", "postgres"], indirect=True)
BATCHES = 10


def begun(jobs: list[JobRecord]) -> list[float]:
    """When each was claimed, in seconds after the first, in order."""
    starts = sorted(job.claimed_at_us for job in jobs if job.claimed_at_us is not None)
    return [(each - starts[0]) / 1e6 for each in starts]


@ON_BOTH
async def test_ten_batches_of_one_workspace_keep_their_distance_and_another_one_is_not_slowed(
    chatbot: Chatbot,
) -> None:
    """With one a minute, ten take nine minutes at least; the clock is moved, so that nobody waits for them."""
    slow = Limit("channel/harbour", rate=Rate(1, per_s=60, strict=True))
    await chatbot.app.client.limits.adefine(slow, reason="the channel asked for it")
    size = chatbot.broadcast.BATCH_MAX
    many = [f"+49{number}" for number in range(BATCHES * size)]
    chatbot.broadcast.start("spring", "harbour", "Hello", many)
    chatbot.broadcast.start("autumn", "museum", "Hello", many[:size])

    await chatbot.work()
    first = chatbot.broadcast.counts("spring")
    other = chatbot.broadcast.counts("autumn")
    for _ in range(BATCHES):
        chatbot.clock.advance(60.0)
        await chatbot.work()

    assert other == {"sent": size}, "the other workspace had to wait"
    assert first["pending"] >= (BATCHES - 2) * size, "more than its pace let through"
    assert chatbot.broadcast.counts("spring") == {"sent": BATCHES * size}
    jobs = await chatbot.app.client.alist_jobs(queue="broadcasts")
    starts = begun([job for job in jobs if job.limits == ["channel/harbour"]])
    assert len(starts) == BATCHES
    assert all(later - earlier >= 60.0 for earlier, later in pairwise(starts)), starts
    assert len(chatbot.world.delivered) == (BATCHES + 1) * size


@ON_BOTH
async def test_a_batch_over_the_pace_waits_at_its_workspaces_gate_and_uses_no_attempt(
    chatbot: Chatbot,
) -> None:
    await chatbot.app.client.limits.adefine(Limit("channel/harbour", rate=Rate(1, per_s=60, strict=True)))
    many = [f"+49{number}" for number in range(2 * chatbot.broadcast.BATCH_MAX)]
    chatbot.broadcast.start("spring", "harbour", "Hello", many)

    await chatbot.work()

    (waits,) = await chatbot.app.client.alist_jobs(states=["waiting"])
    assert (waits.gate, waits.attempt) == ("limit:channel/harbour", 0)
