"""What people see of steps and signals, and do with them: the commands, `why`, and what `doctor` finds."""

from __future__ import annotations

import importlib
import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from fencerow import App, Client, Job
from fencerow.config import Config
from fencerow.core.finding import Level
from fencerow.core.store import store
from fencerow.errors import InvalidInput
from fencerow.steps import memory
from fencerow.steps.checks import examine_steps
from fencerow.steps.memory import Fencing, Remembering
from fencerow.steps.model import Kind
from fencerow.testing import drain
from fencerow.testing.clock import DatabaseClock
from tests.cli import conftest as command_line
from tests.cli.conftest import Cli
from tests.doctor.test_why import ask
from tests.kit.jobs import AnyEngine, read, register, running
from tests.steps.test_waits import asleep

_clean, cli, url = command_line._clean, command_line.cli, command_line.url  # fixtures

pytestmark = pytest.mark.usefixtures("url")

APP = """
from fencerow import App, Job

app = App()


async def send() -> int:
    raise AssertionError("no step is done")


@app.job
async def order(job: Job, number: int) -> None:
    {body}
"""


def remembering(engine: AnyEngine, *names: str) -> str:
    """A job that runs, and remembers these steps."""
    job = running(engine, holder := register(engine))
    for seq, name in enumerate(names, 1):
        step = Remembering(name=name, kind=Kind.STEP, seq=seq, beside=False, result=f'"{name} done"')
        assert engine.run(memory.remember(Fencing(job.id, holder, job.attempt), step))
    engine.run(store.fail([store.Failure(job.id, job.attempt, '{"type":"Boom"}')], holder=holder))
    return job.id


def test_what_a_job_remembers_and_waits_for_is_shown(engine: AnyEngine, cli: Cli) -> None:
    done, waits = remembering(engine, "charge", "ship"), asleep(engine, signal="approved")

    shown = cli("steps", "show", done)
    said = cli("signal", waits, "other", '{"by": "ada"}')
    listed = cli("steps")
    one = json.loads(cli("steps", "show", waits, "--json").out)

    assert "charge" in shown.out and "ship done" in shown.out
    assert f"the signal is kept until job {waits} waits for it" in said.out
    assert waits in listed.out and "signal approved" in listed.out and done not in listed.out
    assert [each["wait"] for each in one["waits"]] == ["wait"]
    assert [each["data"] for each in one["signals"]] == [{"by": "ada"}]


def test_a_signal_wakes_a_job(engine: AnyEngine, cli: Cli) -> None:
    job_id = asleep(engine, signal="approved")

    assert cli("signal", job_id, "approved", "yes").code == 2, "that is no JSON"
    told = cli("signal", job_id, "approved", '"yes"')

    assert f"job {job_id} waited for it, and is queued" in told.out
    assert read(engine, job_id).state == "queued"


def test_a_finished_job_goes_on_from_a_step(engine: AnyEngine, cli: Cli) -> None:
    job_id = remembering(engine, "charge", "pack", "ship")

    with pytest.raises(InvalidInput, match="remembers: charge, pack, ship"):
        Client(engine).revive_from(job_id, "pay")
    assert read(engine, job_id).state == "failed", "nothing is changed"
    told = cli("steps", "revive", job_id, "--from", "pack")

    assert told.out.strip() == f"job {job_id} is queued; it does again: pack, ship"
    assert read(engine, job_id).state == "queued"
    assert [step.name for step in engine.run(memory.steps_of(job_id))] == ["charge"]


@pytest.mark.parametrize(
    ("body", "code", "line"),
    [
        ('await job.step("charge", send); await job.step("ship", send)', 0, "it agrees: after all steps"),
        (
            'await job.step("charge", send); await job.step("pack", send)',
            1,
            "asks for step 'pack' at place 2",
        ),
        (
            'await job.step("charge", send)',
            1,
            "the code returns and asks no more, and the history has step 'ship' at place 2",
        ),
        (
            'await job.step("charge", send); await job.step("ship", send); await job.sleep(5)',
            0,
            "agrees with all 2 steps; then it asks for 'sleep'",
        ),
    ],
)
def test_code_is_compared_with_a_recorded_history(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str, code: int, line: str
) -> None:
    job: dict[str, Any] = {"id": "x", "name": "order", "attempt": 2, "state": "failed", "args": {"number": 1}}
    steps = [
        {"name": name, "kind": "step", "seq": seq, "result": 1, "beside": False, "attempt": 1}
        for seq, name in enumerate(("charge", "ship"), 1)
    ]
    (tmp_path / "history.json").write_text(
        json.dumps({"job": job, "steps": steps, "waits": [], "signals": []})
    )
    (tmp_path / "orders.py").write_text(APP.format(body=body))
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(__import__("sys").modules, "orders", raising=False)

    told = cli("steps", "verify", str(tmp_path / "history.json"), "-A", "orders:app")

    assert (told.code, line in told.out) == (code, True), told


def test_doctor_tells_how_many_wait_and_who_is_not_woken(engine: AnyEngine, clock: DatabaseClock) -> None:
    asleep(engine, delay_s=10.0)
    late = asleep(engine, signal="approved", delay_s=5.0)
    (fine,) = list(examine_steps(engine, Config()))
    clock.advance(100)

    *_, warned = list(examine_steps(engine, Config()))

    assert (fine.level, fine.found) == (Level.OK, "2 wait, 1 of them for a signal")
    assert warned.level is Level.WARN and late in warned.found


def test_why_says_that_it_is_suspended_and_for_what(engine: AnyEngine) -> None:
    job_id = asleep(engine, reason="signal 'approved', until 2026-12-01")
    assert "waits for signal 'approved', until 2026-12-01" in ask(engine, job_id).summary


def test_why_writes_an_instant_in_one_form(url: str, cli: Cli) -> None:
    with App(url) as app:

        @app.job
        async def nap(job: Job) -> None:
            await job.sleep(3600)

        sleeping = nap.submit()
        drain(app)

    told = cli("why", sleeping.id).out

    assert len(re.findall(r"20\d\d-\d\d-\d\dT[0-9:.]+Z", told)) >= 2
    assert " UTC" not in told


SEALED = """
from fencerow import App, Job
from fencerow.payloads import Seal, Sign

app = App(seal={seal})


async def pay(sum: int) -> dict[str, int]:
    return {{"paid": sum}}


@app.job
async def order(job: Job, number: int) -> int:
    paid = await job.step("pay", pay, number)
    answer = await job.wait_for("approved")
    return paid["paid"] + len(answer["by"])
"""


@pytest.mark.parametrize("seal", ['Seal({"k": b"1" * 32}, marks=b"m" * 32)', 'Sign({"k": b"1" * 32})'])
def test_a_history_of_an_app_that_seals_or_signs_is_compared_too(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seal: str
) -> None:
    (tmp_path / "sealing.py").write_text(SEALED.format(seal=seal))
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "sealing", raising=False)
    app = importlib.import_module("sealing").app
    job_id = app.submit_by_name("order", {"number": 17}).id
    app.client.signal(job_id, "approved", {"by": "ada"})
    drain(app)
    assert app.client.handle(job_id).result(0) == 20
    app.close()
    (tmp_path / "history.json").write_text(cli("steps", "show", job_id, "--json").out)

    told = cli("steps", "verify", str(tmp_path / "history.json"), "-A", "sealing:app")

    assert (told.code, "it agrees: after all steps of the history the code returns" in told.out) == (
        0,
        True,
    ), told
