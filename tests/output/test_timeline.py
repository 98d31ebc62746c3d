"""`fencerow jobs timeline --full`: all that happened to one job, in one order."""

from __future__ import annotations

import asyncio
import json

import pytest

from fencerow import Client, Job
from tests.cli import conftest as command_line
from tests.cli.conftest import Cli
from tests.core.worker.stage import working
from tests.kit.jobs import AnyEngine

_clean, cli, url = command_line._clean, command_line.cli, command_line.url  # fixtures

pytestmark = pytest.mark.usefixtures("url")


async def pay() -> str:
    return "a receipt"


async def order(job: Job) -> None:
    await job.step("pay", pay)
    await job.log("paid")
    await job.emit("paid ")
    if job.failures == 0:
        raise RuntimeError("it fails behind its step")
    await job.wait_for("approved")
    await job.emit("approved")


def test_all_that_happened_is_told_in_one_order(engine: AnyEngine, cli: Cli) -> None:
    job_id = asyncio.run(worked_off(engine))

    full = json.loads(cli("jobs", "timeline", job_id, "--full", "--json").out)
    kinds = [each["kind"] for each in full]
    assert [each["at"] for each in full] == sorted(each["at"] for each in full)
    order_of = ["submitted", "step done", "log info", "output begins", "retried", "signal taken", "succeeded"]
    places = [kinds.index(kind) for kind in order_of]
    assert places == sorted(places), kinds
    assert kinds.index("signal came") < kinds.index("signal taken")
    assert [each["attempt"] for each in full if each["kind"] == "output begins"] == [1, 2]

    shown = cli("jobs", "timeline", job_id, "--full").out
    assert "approved, taken by signal approved" in shown and "a receipt" not in shown
    plain = json.loads(cli("jobs", "timeline", job_id, "--json").out)
    assert plain and {each["kind"] for each in plain} < set(kinds) - {"step done", "log info"}


async def worked_off(engine: AnyEngine) -> str:
    async with working(engine, order) as stage:
        job_id = await stage.submit("order", attempts_max=2)
        await Client(engine).asignal(job_id, "approved", {"by": "ada"})
        assert (await stage.ended(job_id)).state == "succeeded"
    return job_id
