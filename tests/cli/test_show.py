"""What `jobs show` tells a person of one job, and a list of each."""

from __future__ import annotations

import re

import pytest

from fencerow.core.store import store
from fencerow.core.store.store import Requeue
from fencerow.db.text import percent
from fencerow.limits import Limit, limits
from tests.cli.conftest import Cli
from tests.kit import jobs
from tests.kit.jobs import AnyEngine


def facts(text: str) -> dict[str, str]:
    """The names and values above the timeline."""
    head = text.partition("\n\ntimeline")[0]
    return {name: value.strip() for name, _, value in (line.partition("  ") for line in head.splitlines())}


def test_whatever_a_job_waits_for_is_on_the_screen(cli: Cli, url: str, engine: AnyEngine) -> None:
    engine.run(limits.define(Limit("github", at_once=1), actor=None, reason=None))
    keyed = jobs.new_job(exclusive="account-7", exclusive_at_once=2, strict=True, limits=["github"])
    (job,) = jobs.submit(engine, keyed)
    (shared,) = jobs.submit(engine, jobs.new_job(share="tenant-7"))

    waiting, queued = facts(cli("jobs", "show", job).out), facts(cli("jobs", "show", shared).out)

    assert waiting["exclusive"] == "account-7, 2 at once, strict: it keeps its turn between its attempts"
    assert (waiting["state"], waiting["limits"], queued["share"]) == ("waiting", "github", "tenant-7")
    assert waiting["waits at"] in ("the exclusive key account-7", "the limit github")
    assert waiting["waits"].count("no worker is alive") == 1, "what two conditions tell is told once"
    assert (
        queued["waits"]
        == "no worker is alive: start `fencerow worker`; living workers that serve queue mail: 0 of 0"
    )
    engine.run(store.cancel(shared, actor="ada"))
    assert "waits" not in facts(cli("jobs", "show", shared).out)


def retried(engine: AnyEngine, holder: str) -> str:
    """A job that has failed once and waits for its next attempt."""
    job = jobs.running(engine, holder)
    engine.run(store.progress(job.id, holder=holder, attempt=1, percent=100 / 6, note="page 1"))
    back = Requeue(
        id=job.id,
        attempt=1,
        kind="retried",
        delay_s=60.0,
        failures=1,
        detail='{"type":"RuntimeError","message":""}',
    )
    assert engine.run(store.requeue([back], holder=holder))
    return job.id


def test_workers_are_named_and_a_retry_is_noted(cli: Cli, url: str, engine: AnyEngine) -> None:
    holder = jobs.register(engine)
    waits, runs = retried(engine, holder), jobs.running(engine, holder).id
    engine.run(store.progress(runs, holder=holder, attempt=1, percent=100 / 6, note="page 1"))

    listed = {line[:36]: line for line in cli("jobs").out.splitlines()}

    assert "failed 1 of 3" in listed[waits] and "16.7 % page 1" in listed[runs]
    assert facts(cli("jobs", "show", runs).out)["holder"] == f"w on h, pid 1 ({holder})"
    assert re.search(r"retried +by w on h, pid 1; RuntimeError$", cli("jobs", "show", waits).out, re.M)
    assert cli("jobs", "show", runs, "--json").json["job"]["holder"] == holder


def test_a_list_at_a_terminal_is_as_long_as_its_window(
    cli: Cli, url: str, engine: AnyEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = [each for _ in range(12) for each in jobs.submit(engine)]
    monkeypatch.setattr("fencerow.command.output.is_terminal", lambda: True)
    monkeypatch.setenv("LINES", "10")
    monkeypatch.setenv("COLUMNS", "80")

    shown, asked_for = cli("jobs"), cli("jobs", "--limit", "12")

    assert len((shown.out + shown.err).splitlines()) < 10, "the prompt stands below them"
    assert ids[-1][-8:] in shown.out.splitlines()[1] and "the next page: --before" in shown.err
    assert all(each[-8:] in asked_for.out for each in ids)
    assert len(cli("jobs", "--json").json) == 12


def test_a_dry_run_says_which(cli: Cli, url: str, engine: AnyEngine) -> None:
    ids = [each for _ in range(17) for each in jobs.submit(engine)]

    few, many = cli("jobs", "cancel", *ids[:2], "--dry-run").out, cli("jobs", "cancel", *ids, "--dry-run").out

    assert [ids[0] in few, ids[1] in few] == [True, True]
    assert few.endswith("2 jobs would be changed by cancel; nothing was changed\n")
    assert "and 2 more; --json has all ids" in many and len(many.splitlines()) < 24


@pytest.mark.parametrize(("value", "shown"), [(40.0, "40 %"), (7 / 6, "1.2 %"), (100.0, "100 %"), (0, "0 %")])
def test_percents_are_short(value: float, shown: str) -> None:
    assert percent(value) == shown
