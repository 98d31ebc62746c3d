"""`jobs list --columns` shows what somebody asks for; `jobs cancel --only-queued` empties a queue."""

from __future__ import annotations

import pytest

from fencerow.cli.columns import CELLS
from fencerow.db.postgres import PostgresEngine
from fencerow.db.sqlite import SqliteEngine
from tests.cli.conftest import Cli
from tests.kit import jobs

AnyEngine = SqliteEngine | PostgresEngine


def test_columns_are_shown_in_the_order_that_was_asked_for(cli: Cli, url: str, engine: AnyEngine) -> None:
    (job_id,) = jobs.submit(engine, jobs.new_job(priority=7))

    head, row = cli("jobs", "list", "--columns", "priority,id,queue").out.splitlines()

    assert head.split() == ["priority", "id", "queue"]
    assert row.split() == ["7", job_id, "mail"]
    assert cli("jobs", "--columns", ",".join(CELLS)).code == 0


@pytest.mark.parametrize(
    ("given", "told"), [("prio", "priority"), ("id,id", "twice"), ("", "there is no column")]
)
def test_columns_that_are_not_there_are_refused(cli: Cli, url: str, given: str, told: str) -> None:
    result = cli("jobs", "list", "--columns", given)

    assert (result.code, result.error) == (2, "FR-201")
    assert told in result.err


def test_a_queue_is_emptied_and_what_runs_goes_on(cli: Cli, url: str, engine: AnyEngine) -> None:
    running = jobs.running(engine)
    here, later, elsewhere = jobs.submit(
        engine, jobs.new_job(), jobs.new_job(delay_s=600.0), jobs.new_job(queue="other")
    )

    preview = cli("jobs", "cancel", "--only-queued", "--queue", "mail", "--dry-run", "--json").json
    done = cli("jobs", "cancel", "--only-queued", "--queue", "mail", "--json").json

    assert (preview["verb"], preview["jobs"]) == ("cancel", 2)
    assert {each["id"] for each in done["outcomes"]} == {here, later}
    states = {each: jobs.read(engine, each).state.value for each in (running.id, here, later, elsewhere)}
    assert states == {running.id: "running", here: "cancelled", later: "cancelled", elsewhere: "queued"}
    assert cli("jobs", "cancel", "--only-queued", running.id, "--yes").code == 1, (
        "named or not, what runs goes on"
    )
    assert cli("jobs", "cancel", "--only-queued").code == 2, "without a filter it never means all"
