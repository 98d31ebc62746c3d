"""What jobs say to Discord, against a server that stands for it, and what each of its answers means for a retry."""

from __future__ import annotations

import socket
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest

from fencerow import App, Job, State
from fencerow.errors import DiscordRefused, InvalidInput
from fencerow.web.discord import DiscordApi, ReplyTo
from fencerow.web.discord.interaction import EPOCH_MS, SEQUENCE_BITS
from tests.kit.pace import PATIENCE_S
from tests.web.discord.double import Api

TOKEN = "very-secret.token_1"


def reply(age_s: float = 60.0) -> ReplyTo:
    made_ms = round((time.time() - age_s) * 1000)
    return ReplyTo("4711", str((made_ms - EPOCH_MS) << SEQUENCE_BITS), TOKEN)


@pytest.fixture
async def discord(api: Api) -> AsyncIterator[DiscordApi]:
    made = DiscordApi(url=api.url, bot_token="bot")
    yield made
    await made.aclose()


async def test_a_reply_is_edited_and_typing_shown(api: Api, discord: DiscordApi) -> None:
    await discord.edit(reply(), "@everyone look", embeds=[{"title": "t"}])
    await discord.typing("77")

    path = f"/webhooks/4711/{TOKEN}/messages/@original"
    message = {
        "content": "@everyone look",
        "allowed_mentions": {"parse": []},
        "embeds": [{"title": "t"}],
    }
    assert api.seen == [("PATCH", path, message, None), ("POST", "/channels/77/typing", None, "Bot bot")]


@pytest.mark.parametrize(
    ("status", "headers", "document", "age_s", "meant"),
    [
        (429, {}, {"retry_after": 1.5, "global": False}, 60, (True, 1.5)),
        (429, {"retry-after": "7"}, "no JSON of Discord's", 60, (True, 7.0)),
        (404, {}, {"code": 10015}, 60, (False, None)),
        (401, {}, {"code": 50027}, 60, (False, None)),
        (404, {}, {"code": 10015}, 1, (True, 1.0)),  # the job was quicker than our answer to the interaction
        (400, {}, {"code": 50035}, 1, (False, None)),
        (503, {}, "", 60, (True, None)),
        (302, {"location": "http://127.0.0.1:1/"}, "", 60, (False, None)),
    ],
)
async def test_each_answer_says_whether_and_when_to_try_again(
    api: Api,
    discord: DiscordApi,
    status: int,
    headers: dict[str, str],
    document: Any,
    age_s: float,
    meant: tuple[bool, float | None],
) -> None:
    api.answers.append((status, headers, document))
    with pytest.raises(DiscordRefused) as caught:
        await discord.edit(reply(age_s), "hello")

    assert (caught.value.retryable, caught.value.retry_after, caught.value.status_code) == (*meant, status)
    assert TOKEN not in f"{caught.value} {caught.value.__cause__} {caught.value.__context__}"


async def test_nothing_is_sent_when_the_token_is_over_or_the_text_cannot_be_taken(
    api: Api, discord: DiscordApi
) -> None:
    with pytest.raises(DiscordRefused, match="15 minutes") as over:
        await discord.edit(reply(901), "hello")
    for text in ("", "x" * 2001):
        with pytest.raises(InvalidInput, match="2000"):
            await discord.edit(reply(), text)
    for channel in ("../webhooks", ""):
        with pytest.raises(InvalidInput, match="channel"):
            await discord.typing(channel)
    assert not over.value.retryable and api.seen == []


async def test_who_does_not_answer_is_tried_again_and_told_of_without_the_token() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        discord = DiscordApi(url=f"http://127.0.0.1:{silent.getsockname()[1]}", timeout_s=0.2)
        with pytest.raises(DiscordRefused, match="did not answer") as caught:
            await discord.edit(reply(), "hello")
        await discord.aclose()
    assert caught.value.retryable and caught.value.__context__ is None and TOKEN not in str(caught.value)


async def test_a_job_is_retried_when_discord_says_and_fails_when_it_says_never(
    app: App, api: Api, discord: DiscordApi
) -> None:
    @app.job(queue="bot", attempts_max=3)
    async def say(job: Job, to: ReplyTo) -> None:
        await discord.edit(to, f"attempt {job.attempt}")

    api.answers += [(429, {}, {"retry_after": 0.05}), (404, {}, {"code": 10015})]
    handle = await app.jobs["say"].asubmit(reply())
    async with app.worker():
        job = await app.client.await_ended(handle.id, timeout_s=PATIENCE_S)

    assert (job.state, api.edits()) == (State.FAILED, ["attempt 1", "attempt 2"])
