"""The example `examples/agent`: its steps, its approval, its tokens; in one process and in workers that are killed."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from examples.agent import agent
from examples.agent.model import ScriptedModel
from examples.agent.tools import SHOP, shop
from fencerow import App
from tests.core.worker.stage import quick
from tests.house.tree import ROOT
from tests.kit.pace import PATIENCE_S


@pytest.mark.parametrize(("yes", "answer"), [(True, "It is paid back."), (False, "Nobody allowed it")])
async def test_the_agent_asks_before_it_pays_and_pays_once(
    sqlite_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, yes: bool, answer: str
) -> None:
    monkeypatch.setenv(SHOP, str(tmp_path / "shop.db"))
    monkeypatch.setattr(agent, "model", ScriptedModel(0.0))
    async with App(f"sqlite:///{sqlite_path}", config=quick()) as app:
        agent.declare(app)
        async with app.worker():
            job = await app.asubmit_by_name("agent", {"task": "The lamp of order 17 came broken."})
            said = ""
            async for chunk in app.client.aoutput(job.id, timeout_s=PATIENCE_S):
                said += chunk.data
                if said.endswith("that back. "):  # it asks now
                    await app.client.asignal(job.id, "allow 1.0", {"yes": yes})
            assert (await job.aresult(PATIENCE_S)).startswith(answer)

        steps = [step.name for step in await app.client.asteps(job.id)]
    assert said.startswith("I look at the order first. It cost 40 EUR") and said.count("It cost") == 1
    assert ("pay_back 1.0" in steps) is yes
    with closing(shop()) as connection:
        assert len(connection.execute("SELECT * FROM payments").fetchall()) == int(yes)


@pytest.mark.prove
async def test_workers_that_are_killed_at_random_finish_it() -> None:
    words = [sys.executable, "-m", "examples.agent", "--kills", "5", "--seed", "7"]
    ours = {key: value for key, value in os.environ.items() if not key.startswith("FENCEROW_")}
    done = await asyncio.to_thread(
        subprocess.run,
        words,
        cwd=ROOT,
        env=ours | {"PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"},
        capture_output=True,
        text=True,
        timeout=10 * PATIENCE_S,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    assert "answer: It is paid back." in done.stdout and "paid back: 1 time\n" in done.stdout
    assert done.stdout.count("(killed)") >= 1
