"""What Discord is answered: to a probe, to what it did not sign, and to interactions whose jobs are stored or not."""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any

import httpx
import pytest

from fencerow import App
from fencerow.errors import ConfigError, InteractionRefused
from fencerow.payloads.hiding import hidden_arguments
from fencerow.web.discord import Discord, DiscordKey, Interaction, verify_interaction
from fencerow.web.discord.interaction import interaction_of
from fencerow.web.reading.room import Room
from tests.kit.pace import PATIENCE_S, slower
from tests.web.answers.conftest import Lock
from tests.web.discord.double import Signs

# RFC 8032, section 7.1: the public key, the message and the signature of tests 1 to 3.
VECTORS = (
    (
        "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
        "",
        "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b",
    ),
    (
        "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c",
        "72",
        "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00",
    ),
    (
        "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025",
        "af82",
        "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a",
    ),
)


async def sent(caller: httpx.AsyncClient, signs: Signs, interaction: dict[str, Any]) -> httpx.Response:
    headers, body = signs.sent(interaction)
    return await caller.post("/", content=body, headers=headers)


async def jobs(app: App) -> list[str]:
    return [each.id for each in await app.client.alist_jobs()]


@pytest.mark.parametrize(("key", "message", "signature"), VECTORS)
def test_signatures_are_judged_as_the_standard_says(key: str, message: str, signature: str) -> None:
    judge = DiscordKey.parsed(key)
    right = bytes.fromhex(signature)

    assert judge.signed(right, bytes.fromhex(message))
    assert not judge.signed(right, bytes.fromhex(message) + b"x")
    assert not judge.signed(right[:-1] + bytes([right[-1] ^ 1]), bytes.fromhex(message))


def test_what_was_altered_cut_replayed_or_is_old_is_refused() -> None:
    signs = Signs()
    key = DiscordKey.parsed(signs.public)
    headers, body = signs.sent(signs.new())
    signature, timestamp = headers["x-signature-ed25519"], headers["x-signature-timestamp"]
    later = str(int(timestamp) + 1)
    old_headers, old = signs.sent(signs.new(), at_s=time.time() - 301)

    verify_interaction([signature], [timestamp], body, key)
    for signed, at, what in (
        ([signature], [later], body),  # sent again under a new timestamp
        ([signature], [timestamp], body[:-1]),
        ([signature], [timestamp], body + b" "),
        ([signature[:-2]], [timestamp], body),
        ([signature, signature], [timestamp], body),
        ([signature], [f"{timestamp}\n"], body),
        ([], [timestamp], body),
        ([signature], [], body),
        ([Signs().sent(signs.new())[0]["x-signature-ed25519"]], [timestamp], body),
        ([old_headers["x-signature-ed25519"]], [old_headers["x-signature-timestamp"]], old),
    ):
        with pytest.raises(InteractionRefused):
            verify_interaction(signed, at, what, key)


async def test_a_probe_is_answered_and_who_is_not_discord_is_refused(
    app: App, caller: httpx.AsyncClient, signs: Signs
) -> None:
    pong = await sent(caller, signs, {**signs.new(), "type": 1})
    strange = await sent(caller, Signs(), signs.new())
    bare = await caller.post("/", json=signs.new())
    got = await caller.get("/")

    assert (pong.status_code, pong.json()) == (200, {"type": 1})
    assert [(each.status_code, each.json()["code"]) for each in (strange, bare)] == [(401, "FR-976")] * 2
    assert got.status_code == 405 and await jobs(app) == []


async def test_the_reply_is_deferred_once_the_job_is_stored_under_the_interaction(
    app: App, caller: httpx.AsyncClient, signs: Signs
) -> None:
    asked = signs.new(options=[{"name": "text", "type": 3, "value": "what?"}])
    first, again = await sent(caller, signs, asked), await sent(caller, signs, asked)
    clicked = await sent(caller, signs, signs.new("again:7", 3))
    whispered = await sent(caller, signs, signs.new("whisper"))
    unknown = await sent(caller, signs, signs.new("dance"))

    assert [each.json() for each in (first, again, clicked, whispered)] == [
        {"type": 5}, {"type": 5}, {"type": 6}, {"type": 5, "data": {"flags": 64}},
    ]  # fmt: skip
    assert (unknown.json()["type"], unknown.json()["data"]["flags"]) == (4, 64)
    own = interaction_of(json.dumps(asked).encode()).job_id
    assert len(await jobs(app)) == 3 and own in await jobs(app)
    async with app.worker():
        assert await app.client.handle(own).aresult(PATIENCE_S) == "WHAT?"


async def test_while_nothing_can_be_stored_busy_is_told_in_time_and_the_id_finds_what_became_of_it(
    app: App, caller: httpx.AsyncClient, signs: Signs, locked: Lock
) -> None:
    hurried = Discord(app, public_key=signs.public, busy_s=slower(0.4))
    hurried.command("ask")(lambda interaction: app.jobs["think"].call(interaction.reply, "hello"))
    asked = signs.new()
    await sent(caller, signs, signs.new())
    async with httpx.AsyncClient(transport=httpx.ASGITransport(hurried), base_url="http://b") as impatient:
        with locked():
            began = asyncio.get_running_loop().time()
            busy = await sent(impatient, signs, asked)
            took_s = asyncio.get_running_loop().time() - began
    deferred = await sent(caller, signs, asked)

    assert (busy.status_code, busy.json()["type"], busy.json()["data"]["flags"]) == (200, 4, 64)
    assert took_s < slower(10.0)  # and not as long as the database is locked
    assert deferred.json() == {"type": 5} and len(await jobs(app)) == 2


async def test_while_all_seats_are_taken_busy_is_told_and_nothing_is_submitted(
    app: App, discord: Discord, caller: httpx.AsyncClient, signs: Signs
) -> None:
    discord._room = Room(1, 1)
    with discord._room.seat("discord"):
        busy = await sent(caller, signs, signs.new())
    assert (busy.json()["type"], await jobs(app)) == (4, [])
    assert (await sent(caller, signs, signs.new())).json() == {"type": 5}


async def test_the_token_of_an_interaction_is_hidden_where_people_look(
    app: App, caller: httpx.AsyncClient, signs: Signs, caplog: pytest.LogCaptureFixture
) -> None:
    asked = signs.new()
    await sent(caller, signs, asked)
    stored = (await app.client.aget((await jobs(app))[0])).args
    shown = hidden_arguments(app.jobs["think"], stored, lambda _: "hidden")

    assert stored["reply"]["token"] == asked["token"]
    assert shown["reply"]["token"] == "hidden"
    read = interaction_of(json.dumps(asked).encode())
    assert asked["token"] not in f"{read!r} {read.reply!r} {caplog.text}"


async def test_a_function_that_fails_tells_the_log_and_the_person_but_no_secret(
    discord: Discord, caller: httpx.AsyncClient, signs: Signs, caplog: pytest.LogCaptureFixture
) -> None:
    @discord.command("broken")
    def broken(interaction: Interaction) -> Any:
        raise KeyError("oops")

    told = await sent(caller, signs, signs.new("broken"))

    assert told.json()["type"] == 4 and "KeyError" in caplog.text and "secret-token" not in caplog.text
    with pytest.raises(ConfigError, match="twice"):
        discord.command("broken")(broken)
    with pytest.raises(ConfigError, match="64 hexadecimal"):
        DiscordKey.parsed("x")
