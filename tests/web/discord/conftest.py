"""An endpoint over an app on a database of each kind, and a caller that is Discord."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

import httpx
import pytest

from fencerow import App
from fencerow.core.app import Call
from fencerow.web.discord import Discord, Interaction, ReplyTo
from tests.kit.pace import PATIENCE_S
from tests.web.answers.conftest import Lock as Lock
from tests.web.answers.conftest import locked as locked
from tests.web.discord.double import Api, Signs, discord_api
from tests.web.gateway.conftest import app as app
from tests.web.gateway.conftest import url as url


@pytest.fixture
def signs() -> Signs:
    return Signs()


@pytest.fixture
def discord(app: App, signs: Signs) -> Discord:
    @app.job(queue="bot")
    async def think(reply: ReplyTo, text: str) -> str:
        return text.upper()

    made = Discord(app, public_key=signs.public, busy_s=PATIENCE_S)

    @made.command("ask")
    def ask(interaction: Interaction) -> Call[Any]:
        return think.call(interaction.reply, str(interaction.options.get("text", "hello")))

    made.component("again")(ask)
    made.command("whisper", ephemeral=True)(ask)
    return made


@pytest.fixture
async def caller(discord: Discord) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(discord), base_url="http://bot.example.com"
    ) as made:
        yield made


@pytest.fixture
def api() -> Iterator[Api]:
    with discord_api() as made:
        yield made
