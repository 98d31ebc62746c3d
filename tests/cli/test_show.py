"""What `jobs show` tells a person of one job."""

from __future__ import annotations

from fencerow.core.store import store
from fencerow.limits import Limit, limits
from tests.cli.conftest import Cli
from tests.kit import jobs
from tests.kit.jobs import AnyEngine


def facts(text: str) -> dict[str, str]:
    """The names and values above the timeline."""
    head = text.partition("\n\ntimeline")[0]
    return {name: value.strip() for name, _, value in (line.partition("  ") for line in head.splitlines())}


def test_whatever_a_job_waits_for_is_on_the_screen(cli: Cli, url: str, engine: AnyEngine) -> None:
    engine.run(limits.define(Limit("github", slots=1), actor=None, reason=None))
    keyed = jobs.new_job(exclusive="account-7", exclusive_slots=2, strict=True, limits=["github"])
    (job,) = jobs.submit(engine, keyed)
    (shared,) = jobs.submit(engine, jobs.new_job(share="tenant-7"))

    waiting, queued = facts(cli("jobs", "show", job).out), facts(cli("jobs", "show", shared).out)

    assert waiting["exclusive"] == "account-7, 2 slots, strict: it keeps its turn between its attempts"
    assert (waiting["state"], waiting["limits"], queued["share"]) == ("waiting", "github", "tenant-7")
    assert waiting["gate"] in ("the exclusive key account-7", "the limit github")
    assert waiting["waits"].count("no worker is alive") == 1, "what two conditions tell is told once"
    assert (
        queued["waits"]
        == "no worker is alive: start `fencerow worker`; living workers that serve queue mail: 0 of 0"
    )
    engine.run(store.cancel(shared, actor="ada"))
    assert "waits" not in facts(cli("jobs", "show", shared).out)
