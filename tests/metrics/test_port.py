"""`worker --metrics`: one port for one process or several, and a last scrape after the end."""

from __future__ import annotations

import signal
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from fencerow.app import App
from fencerow.cli.metrics_port import WorkerMetrics
from fencerow.core.worker.vitals import Phase, Vitals
from fencerow.db.sqlite import SqliteEngine
from fencerow.metrics import Metrics
from fencerow.metrics.members import Folder, answering, merged
from fencerow.testing.ports import free_port
from tests.cli.conftest import Cli, command
from tests.kit.command import Command
from tests.kit.pace import PATIENCE_S
from tests.metrics.test_page import samples


@contextmanager
def working(*words: str) -> Iterator[Command]:
    process = command("worker", *words)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def scraped(port: int) -> bytes:
    """The page, once it is there."""
    while True:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=PATIENCE_S) as answer:
                assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
                page: bytes = answer.read()
                return page
        except urllib.error.URLError:
            continue


def test_several_processes_are_told_apart_and_the_database_is_told_once(
    lite: SqliteEngine,
    shop: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("FENCEROW_URL", f"sqlite:///{lite.path}")
    port = free_port()

    with working(
        "-A", shop, "--processes", "2", "--health", str(port), "--metrics", "--slots", "3"
    ) as process:
        while (found := samples(scraped(port))).get(("fencerow_workers", "alive")) != 2 or len(
            slots := {key: value for key, value in found.items() if key[0] == "fencerow_worker_slots"}
        ) < 4:
            assert process.poll() is None
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE_S) == 0

    assert sum(slots.values()) == 6, "two processes with three slots each"
    assert {key[1] for key in slots} == {"1", "2"}


def test_a_process_that_is_gone_is_left_out() -> None:
    page = b"# HELP a what\n# TYPE a gauge\na 1.0\n"
    with Folder() as folder:
        with answering(folder.path, 1, lambda _whole: page):
            pass
        (folder.path / "2.metrics").touch()  # nobody listens there
        with answering(folder.path, 3, lambda _whole: page):
            found = folder.page()

    assert found == b'# HELP a what\n# TYPE a gauge\na{process="3"} 1.0\n'


def test_pages_of_several_processes_become_one() -> None:
    head = "# HELP n_total count\n# TYPE n_total counter\n"
    once = '# HELP fencerow_jobs jobs\n# TYPE fencerow_jobs gauge\nfencerow_jobs{queue="a b"} 3.0\n'

    one = merged({"1": head + 'n_total{job="x"} 1.0\n' + once, "2": head + "n_total 2.0\n"})

    assert one == head + 'n_total{process="1",job="x"} 1.0\nn_total{process="2"} 2.0\n' + once


def test_a_worker_that_has_ended_waits_for_the_last_scrape(migrated_path: Path) -> None:
    phase = Phase.RUNNING
    with Metrics(App(f"sqlite:///{migrated_path}")) as metrics:
        metrics.of_worker(lambda: Vitals(phase))
        metrics.page()  # an earlier one does not count
        phase = Phase.ENDED
        assert not metrics.wait_for_last_scrape(0.0)

        threading.Timer(0.0, metrics.page).start()
        with WorkerMetrics(metrics, PATIENCE_S).until_scraped():
            pass

        assert metrics.wait_for_last_scrape(0.0)


def test_metrics_without_an_address_are_refused(cli: Cli, shop: str) -> None:
    assert cli("worker", "-A", shop, "--metrics").error == "FR-201"
