"""What an operator is told of unique keys: by `jobs show`, `jobs list`, `why` and `doctor`."""

from __future__ import annotations

import re

from fencerow.config import Config
from fencerow.core.finding import Finding
from fencerow.core.store import store
from fencerow.db.postgres import PostgresEngine
from fencerow.db.sqlite import SqliteEngine
from fencerow.doctor.examine import with_queries
from fencerow.doctor.why import why
from fencerow.testing.clock import DatabaseClock
from fencerow.unique.checks import examine_unique
from fencerow.unique.rules import UniqueClaim, UniqueRule
from tests.cli import conftest as command_line
from tests.cli.conftest import Cli
from tests.kit import jobs
from tests.kit.asked import as_unique

_clean, cli, url = command_line._clean, command_line.cli, command_line.url  # fixtures

AnyEngine = SqliteEngine | PostgresEngine
LATER = UniqueRule(replaces=True, put_off_s=30.0, put_off_max_s=300.0)
FIRST = UniqueRule(period_s=7200.0)


def submit(engine: AnyEngine, key: str, rule: UniqueRule, *, of: str | None = None) -> str:
    """Submit a unique job; returns the id of the one that there is under the key."""
    job = jobs.new_job(submitted_by=of)
    claim = UniqueClaim(scope="send", key=key, rule=rule)
    (answer,) = engine.run(store.submit_asked([as_unique(job, claim)]))
    return answer.id


def test_a_job_is_shown_with_its_key_and_with_what_took_its_place(
    cli: Cli, url: str, engine: AnyEngine
) -> None:
    burst = submit(engine, "order 7", LATER)
    submit(engine, "order 7", LATER)
    submit(engine, "order 7", LATER, of="ada")
    early = submit(engine, "order 8", FIRST)
    (plain,) = jobs.submit(engine)

    shown = cli("jobs", "show", burst).out
    assert "send: order 7, since " in shown
    assert "2 times, the last time" in shown
    assert "of ada" in shown
    shown = cli("jobs", "show", early).out
    assert re.search(r"until in (2 h|1[01]\d min|120 min)", shown), "minutes may pass until the look"
    assert "unique" not in cli("jobs", "show", plain).out
    (key,) = cli("jobs", "show", early, "--json").json["unique"]
    assert (key["scope"], key["key"]) == ("send", "order 8")
    assert key["until"] > key["first"]


def test_a_list_names_the_keys_where_it_is_asked_to(cli: Cli, url: str, engine: AnyEngine) -> None:
    first = submit(engine, "order 7", FIRST)
    (plain,) = jobs.submit(engine)

    rows = cli("jobs", "list", "--columns", "id,unique").out.splitlines()

    assert [row.split() for row in rows[1:]] == [[plain, "-"], [first, "send:", "order", "7"]]


def test_why_says_under_which_key_a_job_was_put_off(engine: AnyEngine, clock: DatabaseClock) -> None:
    burst = submit(engine, "order 7", LATER)
    submit(engine, "order 7", LATER)
    early = submit(engine, "order 8", FIRST)
    clock.advance(3600)
    (plain,) = jobs.submit(engine)

    def said(job_id: str) -> list[str]:
        answer = engine.run(why(job_id))
        return [each.found for each in answer.conditions if each.name == "is like no other"]

    assert said(burst) == [
        "submits find it under send: order 7; later submits took its place once, the last one 1 h ago"
    ]
    assert said(early) == ["submits find it under send: order 8 for 1 h more"]
    assert said(plain) == []


def test_doctor_names_a_key_whose_job_nobody_runs(engine: AnyEngine, clock: DatabaseClock) -> None:
    stuck = submit(engine, "order 7", LATER)
    for _ in range(2):
        submit(engine, "order 7", LATER)
    clock.advance(3500)
    assert _stuck(engine) == []
    clock.advance(300)
    fresh = submit(engine, "order 8", FIRST)

    (found,) = _stuck(engine)

    assert f"send: order 7 come to job {stuck}, which has been due for 1 h" in found.found
    assert "2 later submits took its place" in found.found
    assert f"jobs cancel {stuck}" in str(found.fix)
    engine.run(store.cancel(stuck, actor="ada"))
    assert _stuck(engine) == []
    assert fresh != stuck


def _stuck(engine: AnyEngine) -> list[Finding]:
    with_queries(engine)
    return list(examine_unique(engine, Config()))
