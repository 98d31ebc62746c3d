"""docs/guide/discord.md as it stands: its bot, served beside the gateway by its commands; and the endpoint mounted."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx
from starlette.applications import Starlette
from starlette.routing import Mount

from fencerow.testing.ports import free_port
from fencerow.web.discord import Discord
from tests.house.tree import ROOT
from tests.kit.pace import PATIENCE_S
from tests.web.discord.double import Api, Signs

PAGE = (ROOT / "docs" / "guide" / "discord.md").read_text("utf-8")
(PROGRAM,) = re.findall(r"^```python\n(.+?)^```", PAGE, re.MULTILINE | re.DOTALL)
(COMMANDS,) = re.findall(r"^```sh\n(.+?)^```", PAGE, re.MULTILINE | re.DOTALL)


def test_the_page_s_bot_replies(tmp_path: Path, api: Api) -> None:
    signs, port = Signs(), str(free_port())
    (tmp_path / "bot.py").write_text(PROGRAM)
    env = {**os.environ, "PUBLIC_KEY": signs.public, "DISCORD_API": api.url}
    worker, serve = (
        line.removesuffix(" &").replace("8080", port).split()[1:] for line in COMMANDS.splitlines()
    )
    with ExitStack() as running:
        for command, until in ((worker, "waits for jobs"), (serve, "serving on")):
            running.enter_context(_started(command, until, tmp_path, env))
        headers, body = signs.sent(
            signs.new("count", options=[{"name": "text", "type": 3, "value": "a few words"}])
        )
        address = f"http://127.0.0.1:{port}/discord/interactions"
        told = httpx.post(address, content=body, headers=headers, timeout=PATIENCE_S)
        live = httpx.get(f"http://127.0.0.1:{port}/livez", timeout=PATIENCE_S)
        api.wait(1, PATIENCE_S)

    assert (told.json(), live.status_code, api.edits()) == ({"type": 5}, 200, ["3 words"])


@contextmanager
def _started(command: list[str], until: str, folder: Path, env: dict[str, str]) -> Iterator[None]:
    program = [sys.executable, "-m", "fencerow.cli.main", *command]
    with subprocess.Popen(program, cwd=folder, env=env, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            assert any(until in line for line in process.stderr)
            yield
        finally:
            process.terminate()
            process.communicate()


async def test_it_is_mounted_in_another_application(discord: Discord, signs: Signs) -> None:
    site = Starlette(routes=[Mount("/bots/one", discord)])
    async with httpx.AsyncClient(transport=httpx.ASGITransport(site), base_url="http://b") as caller:
        headers, body = signs.sent(signs.new())
        told = await caller.post("/bots/one/", content=body, headers=headers)
        discord.leave()
        left = await caller.post("/bots/one/", content=body, headers=headers)
    assert (told.json(), left.status_code) == ({"type": 5}, 503)
