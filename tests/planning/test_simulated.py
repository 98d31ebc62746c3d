"""Simulations: beside the closed formulas, by our own rules, and the same again with the same seed."""

from __future__ import annotations

import json
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from fencerow.planning.charts import backlog_lines, svg
from fencerow.planning.errors import InvalidPlan
from fencerow.planning.simulating import Simulation, simulated
from tests.cli import conftest as command_line
from tests.cli.conftest import Cli
from tests.planning.plans import PROBER, changed, plan_of, report_of

cli = command_line.cli  # a fixture
ALL = {"deal": {"misfire": "all"}, "retrieval": {"misfire": "all"}}
POOL = {"workers": {"slots": 4}, "jobs": {"mail": {"arrivals": "2/min", "duration_s": 60}}}


class HTMLParts(HTMLParser):
    """The tags of a picture."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.tags.append(tag)


def played(written: dict[str, Any], seed: int = 0) -> Simulation:
    return simulated(plan_of(written), seed)


def test_what_a_schedule_makes_and_what_it_uses_is_what_the_formulas_say() -> None:
    found = played(PROBER)

    assert found.submitted == {"deal": 18 * 4 * 24, "retrieval": 18 * 6 * 24}
    assert found.busy_s["slots "] / (100 * 86_400) == pytest.approx(576 / 6000, rel=0.01)
    for provider in range(18):
        assert found.busy_s[f"provider/{provider}"] / 86_400 == pytest.approx(32 / 60, rel=0.02)


@pytest.mark.parametrize("lasts_s", [3600, 18_000])
def test_a_backlog_of_keys_lasts_as_long_as_the_formula_says(lasts_s: int) -> None:
    written = changed(PROBER, jobs=ALL, outage={"lasts_s": lasts_s, "starts_s": 7200})
    report = report_of(written).outage
    assert report is not None and report.slowest.drain_s is not None

    found = played(written)

    assert found.drained_s == pytest.approx(float(report.slowest.drain_s), abs=2 * 300)


def test_a_backlog_of_slots_lasts_as_long_as_the_formula_says() -> None:
    written = changed(POOL, outage={"lasts_s": 7200, "starts_s": 3600})
    report = report_of(written).outage
    assert report is not None and report.slowest.drain_s == 7200

    # Submits come by chance, so one play tells little.
    drained = [played(written, seed).drained_s or 0.0 for seed in range(8)]

    assert sum(drained) / len(drained) == pytest.approx(7200, rel=0.2)


def test_what_can_never_catch_up_waits_longer_and_longer() -> None:
    found = played(changed(PROBER, jobs={"deal": {"rate": 12, "misfire": "all"}}))

    assert found.backlog[60] < found.backlog[120] < found.backlog[-1]


@pytest.mark.parametrize(("rules", "jobs"), [({}, 1), ({"misfire": "skip"}, 0), ({"misfire": "all"}, 20)])
def test_an_outage_is_made_up_by_the_rules_of_the_schedule(rules: dict[str, Any], jobs: int) -> None:
    job = {"interval_s": 900, "duration_s": 1, **rules}
    base = {"workers": {"slots": 1}, "jobs": {"poll": job}, "horizon_s": 86_400}

    calm = played(base).submitted["poll"]
    found = played({**base, "outage": {"lasts_s": 18_000, "starts_s": 7200}})

    assert calm == 96
    assert found.submitted["poll"] == 96 - 20 + jobs
    assert found.left_out["poll"] == 20 - jobs


def test_overlap_is_the_schedules() -> None:
    job = {"interval_s": 60, "duration_s": 150}
    skipping = played({"workers": {"slots": 9}, "jobs": {"poll": job}, "horizon_s": 3600})
    queueing = played(
        {"workers": {"slots": 9}, "jobs": {"poll": {**job, "overlap": "queue"}}, "horizon_s": 3600}
    )

    assert skipping.submitted["poll"] == 20 and skipping.left_out["poll"] == 40
    assert queueing.submitted["poll"] == 60
    assert queueing.busy_s["slots "] <= 3600, "one at a time"


def test_a_rate_paces_the_starts() -> None:
    written = {
        "workers": {"slots": 50},
        "jobs": {"mail": {"arrivals": "30/min", "duration_s": 1, "limits": ["post"]}},
        "limits": {"post": {"rate": "20/min"}},
        "horizon_s": 3600,
    }

    found = played(written)

    assert len(found.waits_s["mail"]) == pytest.approx(1200, abs=25)
    assert found.backlog[-1] == pytest.approx(600, abs=120)


@pytest.mark.parametrize("name", ["queue:default", "fleet", "chain"])
def test_what_a_limit_lets_run_at_once_holds(name: str) -> None:
    mail = {"arrivals": "6/min", "duration_s": 60, "limits": ["chain"] if name == "chain" else []}
    written = {"workers": {"slots": 50}, "jobs": {"mail": mail}, "limits": {name: {"at_once": 3}}}

    found = played({**written, "horizon_s": 7200})

    assert found.busy_s["slots "] == pytest.approx(3 * 7200, rel=0.02)


def test_a_limit_per_key_is_counted_for_each_entity() -> None:
    limits = {"pace": {"rate": "2/h", "per_key": True, "values": "provider"}}
    jobs = {"deal": {"limits": ["pace"], "misfire": "all"}}

    found = played(changed(PROBER, limits=limits, jobs=jobs))

    assert len(found.waits_s["deal"]) == pytest.approx(18 * 2 * 24, abs=18)


def test_the_keys_of_a_limit_pace_jobs_that_have_no_key_in_turns() -> None:
    mail = {"arrivals": "100/h", "duration_s": 1, "limits": ["mailer"]}
    limits = {"mailer": {"rate": "10/h", "per_key": True, "values": 3}}

    found = played({"workers": {"slots": 9}, "jobs": {"mail": mail}, "limits": limits})

    assert len(found.waits_s["mail"]) == pytest.approx(3 * 10 * 24, abs=6)


def test_failures_are_tried_again_after_their_backoff() -> None:
    mail = {"arrivals": "1/min", "duration_s": 1, "failure_share": 0.5, "attempts_max": 2}
    found = played({"workers": {"slots": 9}, "jobs": {"mail": mail}})

    assert found.busy_s["slots "] / found.submitted["mail"] == pytest.approx(1.5, rel=0.05)


def test_durations_have_the_mean_and_the_p95() -> None:
    mail = {"arrivals": "10/min", "mean_s": 10, "p95_s": 25}
    found = played({"workers": {"slots": 99}, "jobs": {"mail": mail}})

    assert found.busy_s["slots "] / found.submitted["mail"] == pytest.approx(10, rel=0.03)


def test_a_seed_plays_the_same_and_another_one_does_not() -> None:
    assert played(POOL, 7) == played(POOL, 7)
    assert played(POOL, 7).waits_s != played(POOL, 8).waits_s


def test_too_many_jobs_are_refused() -> None:
    with pytest.raises(InvalidPlan, match="would play"):
        played(changed(PROBER, keys={"provider": {"entities": 1_000_000}}))


def test_the_command_shows_it_and_draws_it(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    written = changed(PROBER, jobs=ALL, outage={"lasts_s": 18_000, "starts_s": 7200})
    Path("plan.json").write_text(json.dumps(written), "utf-8")

    done = cli("plan", "plan.json", "--simulate", "--chart", "plan.svg")
    told = cli("plan", "plan.json", "--simulate", "--json").json["simulation"]

    assert (done.code, done.err) == (0, "")
    assert "the backlog of the outage is drained after 5 h" in done.out
    assert "█" in done.out and max(map(len, done.out.splitlines())) <= 80
    assert told["seed"] == 0 and len(told["backlog"]) == 240
    drawn = HTMLParts(Path("plan.svg").read_text("utf-8"))
    assert drawn.tags[0] == "svg" and drawn.tags.count("polyline") == 1


def test_a_chart_that_cannot_be_written_is_refused(cli: Cli) -> None:
    Path("plan.json").write_text(json.dumps(PROBER), "utf-8")

    done = cli("plan", "plan.json", "--chart", "nowhere/plan.svg")

    assert (done.code, done.error, done.out) == (2, "FR-201", "")


def test_without_simpy_it_says_what_to_install(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "simpy", None)
    Path("plan.json").write_text(json.dumps(PROBER), "utf-8")

    refused = cli("plan", "plan.json", "--simulate")

    assert refused.error == "FR-103"
    assert 'pip install "fencerow[plan]"' in refused.err
    assert cli("plan", "plan.json").code == 0


def test_names_cannot_break_out_of_the_picture() -> None:
    drawn = svg([0, 3, 1], {"key <b>&": 0.5}, 3600.0, "a < b")

    assert "b" not in HTMLParts(drawn).tags
    assert "title" in HTMLParts(drawn).tags


def test_an_empty_backlog_is_a_flat_line() -> None:
    lines = backlog_lines([0] * 100, 3600.0, 60)

    assert len(lines) == 10 and "█" not in "".join(lines)
