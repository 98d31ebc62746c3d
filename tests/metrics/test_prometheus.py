"""A real Prometheus scrapes a real worker, and its queries find what the worker did."""

from __future__ import annotations

import json
import subprocess
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any

import pytest
import yaml

from fencerow.db.sqlite import SqliteEngine
from fencerow.testing.ports import free_port
from tests.cli.conftest import command, new_command
from tests.house.tree import ROOT
from tests.kit.pace import PATIENCE_S

SHIPPED = ROOT / "deploy" / "prometheus"


def queried(port: int, query: str) -> list[dict[str, Any]]:
    words = urllib.parse.urlencode({"query": query})
    try:
        with urllib.request.urlopen(
            f"http://127.0.0.1:{port}/api/v1/query?{words}", timeout=PATIENCE_S
        ) as answer:
            found: list[dict[str, Any]] = json.load(answer)["data"]["result"]
            return found
    except OSError:
        return []  # it starts


@pytest.mark.prove
@pytest.mark.outside("Prometheus")
def test_prometheus_scrapes_a_worker_and_knows_jobs_by_their_names(
    lite: SqliteEngine,
    shop: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("FENCEROW_URL", f"sqlite:///{lite.path}")
    port, at = free_port(), free_port()
    config = yaml.safe_load((SHIPPED / "prometheus.yml").read_text("utf-8"))
    config["global"] = {"scrape_interval": "1s", "evaluation_interval": "1s"}
    config["rule_files"] = [str(SHIPPED / "fencerow.rules.yml")]
    config["scrape_configs"][0]["static_configs"][0]["targets"] = [f"127.0.0.1:{port}"]
    (tmp_path / "prometheus.yml").write_text(yaml.safe_dump(config))
    told = command("submit", "-A", shop, "send", "to=ada")
    told.communicate(timeout=PATIENCE_S)
    processes: list[subprocess.Popen[Any]] = [
        new_command("worker", "-A", shop, "--health", str(port), "--metrics"),
        subprocess.Popen(
            [
                "prometheus",
                f"--config.file={tmp_path / 'prometheus.yml'}",
                f"--storage.tsdb.path={tmp_path / 'data'}",
                f"--web.listen-address=127.0.0.1:{at}",
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        ),
    ]
    try:
        while not (found := queried(at, 'fencerow_jobs_finished_total{outcome="succeeded"} > 0')):
            assert all(each.poll() is None for each in processes)
        alive = queried(at, 'fencerow_workers{state="alive"}')
    finally:
        for each in processes:
            each.kill()
            each.communicate()

    (finished,) = found
    assert (finished["metric"]["job"], finished["metric"]["queue"]) == ("send", "mail"), "not exported_job"
    assert finished["value"][1] == "1" and alive[0]["value"][1] == "1"
