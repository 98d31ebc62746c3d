"""`fencerow plan` at a terminal and for programs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli import conftest as command_line
from tests.cli.conftest import Cli, Result
from tests.cli.test_views import documented
from tests.house.tree import ROOT
from tests.planning.plans import PROBER, changed

cli = command_line.cli  # a fixture


def planned(cli: Cli, written: dict[str, Any], *words: str) -> Result:
    Path("plan.json").write_text(json.dumps(written), "utf-8")
    return cli("plan", "plan.json", *words)


def test_programs_get_every_figure(cli: Cli) -> None:
    written = changed(PROBER, outage={"lasts_s": 3600}, jobs={"deal": {"misfire": "all"}})

    found = planned(cli, written, "--json").json

    assert found["ok"] is True
    page = dict(documented((ROOT / "docs" / "cli.md").read_text("utf-8")))
    assert page["plan"] == ("object", set(found))
    assert [(each["kind"], each["load"], each["left"]) for each in found["bounds"]] == [
        ("key", 32.0, 28.0),
        ("slots", 576.0, 5424.0),
    ]
    (group,) = found["entities"]
    assert (group["entities"], group["entities_max"], group["bound"]["kind"]) == (18, 187, "slots")
    assert found["outage"]["backlog"] == {"deal": 4.0, "retrieval": 1.0}
    assert found["outage"]["drain_s"] == pytest.approx(22 / 28 * 3600)


def test_what_can_never_catch_up_is_said_and_fails(cli: Cli) -> None:
    written = changed(PROBER, jobs={"deal": {"rate": 9.8}})

    done = planned(cli, written)

    assert done.code == 1
    assert (
        "each key of provider can never catch up, with any number of workers: its backlog grows" in done.out
    )
    assert planned(cli, written, "--json").json["ok"] is False


def test_what_is_full_is_said(cli: Cli) -> None:
    done = planned(cli, changed(PROBER, jobs={"deal": {"rate": 9.6}}))

    assert done.code == 0
    assert "each key of provider is full: it keeps up, but nothing is left" in done.out


def test_what_is_late_fails(cli: Cli) -> None:
    outage = {"lasts_s": 36_000, "drained_within_s": 60}

    done = planned(cli, changed(PROBER, outage=outage, jobs={"deal": {"misfire": "all"}}))

    assert done.code == 1
    assert "within 1 min it takes 3646 slots" in done.out


def test_long_names_keep_to_80_columns(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    name = "the providers that answered with something that nobody expected"
    jobs = {"deal": {"key": name, "limits": [name[:20]], "rate": 4, "duration_s": 300_000}}
    keys, limits = {name: {"entities": 1_000_000}}, {name[:20].replace(" ", "-"): {"rate": "10000/s"}}
    jobs["deal"]["limits"] = list(limits)

    done = planned(cli, {**PROBER, "jobs": jobs, "keys": keys, "limits": limits, "outage": {"lasts_s": 9}})

    assert done.err == ""
    assert max(map(len, done.out.splitlines())) <= 80
