"""Code of a job that wants to end the process."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Cli, url_of
from tests.kit.jobs import AnyEngine

SHOP = """
import asyncio, sys
from fencerow import App

app = App()
begun, given_up = asyncio.Event(), asyncio.Event()

async def giving_up(error):
    await begun.wait()
    given_up.set()
    raise error

@app.job(attempts_max=1)
async def exits() -> None:
    await asyncio.gather(giving_up(SystemExit(4)), asyncio.sleep(0))

@app.job(attempts_max=1)
async def interrupts() -> None:
    async with asyncio.TaskGroup() as group:
        group.create_task(giving_up(KeyboardInterrupt()))

@app.job(attempts_max=1)
async def interrupts_itself() -> None:
    await giving_up(KeyboardInterrupt())

@app.job
async def neighbour() -> None:
    begun.set()
    await given_up.wait()
"""


@pytest.mark.parametrize("name", ["exits", "interrupts", "interrupts_itself"])
def test_it_fails_its_job_alone(
    cli: Cli, lite: AnyEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    (tmp_path / "shop.py").write_text(SHOP)
    monkeypatch.setenv("FENCEROW_URL", url_of(lite))
    for each in ("neighbour", name):
        cli("submit", "-A", "shop:app", each)

    code = cli("worker", "-A", "shop:app", "--once").code
    found = cli("jobs", "list", "--json").json

    assert code == 0
    assert {each["name"]: each["state"] for each in found} == {"neighbour": "succeeded", name: "failed"}
