"""What cannot be calculated with is refused: what was found, what was expected, what to do; exit code 2."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli import conftest as command_line
from tests.cli.conftest import Cli
from tests.planning.plans import PROBER, changed

cli = command_line.cli  # a fixture

MAIL = {"queue": "default", "arrivals": "1/min", "duration_s": 1}


def refused(cli: Cli, written: dict[str, Any]) -> str:
    Path("plan.json").write_text(json.dumps(written), "utf-8")
    done = cli("plan", "plan.json")
    assert (done.code, done.error, done.out) == (2, "FR-840", "")
    return done.err


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"jobs": {"deal": {"rate": 0}}}, "jobs.deal: rate is 0"),
        ({"jobs": {"deal": {"rate": -1}}}, "jobs.deal: rate is -1"),
        ({"jobs": {"deal": {"interval_s": 900}}}, "jobs.deal has rate and interval_s"),
        ({"jobs": {"deal": {"rate": None}}}, "jobs.deal has no rate"),
        ({"jobs": {"deal": {"rate": None, "cron": "99 * * * *"}}}, "99"),
        ({"jobs": {"deal": {"duration_s": None}}}, "jobs.deal has no duration"),
        ({"jobs": {"deal": {"duration_s": 0}}}, "jobs.deal.duration_s is 0"),
        ({"jobs": {"deal": {"duration_s": None, "mean_s": 3}}}, "jobs.deal has mean_s"),
        ({"jobs": {"deal": {"duration_s": None, "mean_s": 3, "p95_s": 2}}}, "a mean of 3 s and a p95 of 2 s"),
        ({"jobs": {"deal": {"key": "provder"}}}, "jobs.deal names the key provder"),
        ({"jobs": {"deal": {"limits": ["github"]}}}, "jobs.deal names the limit github"),
        ({"jobs": {"deal": {"failure_share": 1}}}, "jobs.deal.failure_share is 1"),
        ({"jobs": {"deal": {"attempts_max": 0}}}, "jobs.deal.attempts_max is 0"),
        ({"jobs": {"deal": {"misfire": "never"}}}, "jobs.deal: misfire"),
        ({"jobs": {"deal": {"misfire": "all", "overlap": "skip"}}}, "misfire is 'all' and overlap is 'skip'"),
        ({"jobs": {"deal": {"overlap": "queue"}}}, "overlap 'queue' and a key"),
        ({"jobs": {"mail": {**MAIL, "misfire": "one"}}}, "jobs.mail has arrivals and misfire"),
        ({"jobs": {"mail": {**MAIL, "arrivals": "often"}}}, "jobs.mail: the rate 'often' cannot be read"),
        ({"jobs": {"mail": {**MAIL, "speed": 1}}}, "speed"),
        ({"keys": {"tenant": {"entities": 3}}}, "no job of the plan names the key tenant"),
        ({"keys": {"provider": {"entities": 0}}}, "keys.provider.entities is 0"),
        ({"keys": {"provider": {"entities": "many"}}}, "$.keys[...].entities"),
        ({"limits": {"github": {"at_once": 1}}}, "no job of the plan names the limit github"),
        ({"limits": {"queue:mail": {"at_once": 1}}}, "no job of the plan names the queue mail"),
        ({"limits": {"github": {}}}, "limits.github: the limit github limits nothing"),
        ({"limits": {"github": {"rate": "0/s"}}}, "limits.github: count of a rate is 0"),
        (
            {"limits": {"github": {"at_once": 1, "burst": 3}}},
            "limits.github has burst or strict without a rate",
        ),
        (
            {
                "limits": {"pace": {"at_once": 1, "per_key": True}},
                "jobs": {"mail": {**MAIL, "limits": ["pace"]}},
            },
            "jobs.mail names the limit pace, which is per key",
        ),
        (
            {
                "limits": {"pace": {"at_once": 1, "values": 3}},
                "jobs": {"mail": {**MAIL, "limits": ["pace"]}},
            },
            "limits.pace has values and is not per key",
        ),
        ({"workers": {"slots": 0}}, "workers.slots is 0"),
        ({"workers": {"slots": None}}, "workers has no slots"),
        ({"workers": {"queues": {"mail": 3}}}, "workers has slots and queues"),
        ({"workers": {"slots": None, "queues": {"mail": 3}}}, "jobs.deal names the queue default"),
        ({"workers": {"processes": 0}}, "workers.processes is 0"),
        ({"outage": {"lasts_s": 86_400}}, "the outage ends after 86400 s, and the plan after 86400 s"),
        ({"outage": {"lasts_s": 3600, "starts_s": 82_800}}, "the outage ends after 86400 s"),
        ({"outage": {"lasts_s": 0}}, "outage.lasts_s is 0"),
        ({"horizon_s": 1e12}, "horizon_s is 1000000000000.0"),
        ({"jobs": {"a\nb": MAIL}}, "a name in jobs contains U+000A"),
        ({"jobs": {f"job-{number}": MAIL for number in range(200)}}, "the plan has 202 jobs"),
    ],
)
def test_a_plan_that_cannot_work(cli: Cli, more: dict[str, Any], said: str) -> None:
    assert said in refused(cli, changed(PROBER, **more))


def test_a_plan_without_jobs(cli: Cli) -> None:
    assert "the plan has no jobs" in refused(cli, {"workers": {"slots": 1}})


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("plan.toml", "jobs = ", "plan.toml is no TOML"),
        ("plan.toml", "\ud800", "plan.toml is no TOML"),
        ("plan.json", "{", "plan.json is no JSON"),
        ("plan.json", "[" * 100_000, "plan.json is no JSON"),
        ("plan.yaml", "jobs: {}", "plan.yaml is no plan"),
        ("plan.toml", "#" * 1_000_001, "plan.toml is too large"),
    ],
)
def test_a_file_that_is_no_plan(cli: Cli, name: str, text: str, said: str) -> None:
    Path(name).write_bytes(text.encode("utf-8", "surrogatepass"))

    done = cli("plan", name)

    assert (done.code, done.error, done.out) == (2, "FR-840", "")
    assert said in done.err


def test_a_file_that_is_not_there(cli: Cli) -> None:
    done = cli("plan", "nowhere.toml")

    assert (done.code, done.error) == (2, "FR-840")
    assert "nowhere.toml cannot be read: No such file" in done.err
