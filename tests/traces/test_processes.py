"""One trace over four processes, each of which exports what it knows: submitter, two workers, sender of webhooks."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from fencerow.app import App
from tests.cli.conftest import command
from tests.kit.pace import PATIENCE_S
from tests.web.webhooks.stage import hooks_of, receiving

SHOP = "tests.traces.shop:app"
CALLER = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


def exported(folder: Path) -> dict[str, list[dict[str, Any]]]:
    """The spans of each process that wrote any, by its id."""
    return {
        path.stem: [json.loads(line) for line in path.read_text("utf-8").splitlines()]
        for path in folder.glob("*.jsonl")
        if path.stat().st_size
    }


def ran(*words: str) -> None:
    process = command(*words)
    _, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, err


def submitted() -> None:
    """By a process of its own."""
    code = (
        f"from tests.traces.shop import order; order.using(headers={{'traceparent': '{CALLER}'}}).submit(7)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=PATIENCE_S)
    assert done.returncode == 0, done.stderr


@pytest.mark.prove
def test_the_trace_of_a_job_is_put_together_from_what_four_processes_exported(
    migrated_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = Path(__file__).parents[2]
    monkeypatch.chdir(root)
    monkeypatch.setenv("FENCEROW_URL", f"sqlite:///{migrated_path}")
    monkeypatch.setenv("TEST_SPANS", str(tmp_path))
    with receiving() as receiver:
        monkeypatch.setenv("FENCEROW_WEBHOOK_ALLOW", receiver.url.removesuffix("/hooks"))
        app = App()
        hooks_of(app).add("it", receiver.url)
        app.close()
        submitted()
        ran("worker", "-A", SHOP, "-Q", "orders", "--once")
        ran("worker", "-A", SHOP, "-Q", "parcels", "--once")
        monkeypatch.setenv("TEST_DELIVERS", "1")
        sender = command("worker", "-A", SHOP, "-Q", "fencerow-webhooks")
        try:
            with receiver.came:
                assert receiver.came.wait_for(lambda: len(receiver.got) == 2, PATIENCE_S)
        finally:
            sender.terminate()
            sender.communicate(timeout=PATIENCE_S)

    by_process = exported(tmp_path)
    spans = {span["context"]["span_id"]: span for found in by_process.values() for span in found}
    assert len(by_process) == 4
    assert {span["context"]["trace_id"] for span in spans.values()} == {f"0x{CALLER.split('-')[1]}"}
    parents = {
        span["name"]: spans.get(span["parent_id"], {"name": "the caller"})["name"] for span in spans.values()
    }
    assert parents["submit order"] == "the caller"
    assert parents["process order"] == "submit order"
    assert parents["submit ship"] == "process order"
    assert parents["process ship"] == "submit ship"
    sent = [span for span in spans.values() if span["name"] == "process fencerow.webhook"]
    assert {spans[span["parent_id"]]["name"] for span in sent} == {"submit order", "submit ship"}
    told = {f"0x{got.headers['traceparent'].split('-')[2]}" for got in receiver.got}
    assert told == {span["context"]["span_id"] for span in sent}, "the receiver goes on from there"
