"""docs/tutorial.md as a reader follows it: its files, its commands and its tests, on PostgreSQL."""

from __future__ import annotations

import ast
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from psycopg.conninfo import conninfo_to_dict

from fencerow.testing.postgres import PostgresServer
from tests.house.tree import ROOT
from tests.kit.loops import module_path
from tests.kit.pace import PATIENCE_S

PAGE = (ROOT / "docs" / "tutorial.md").read_text("utf-8")
FILES = {
    name: f"# {name}\n{text}"
    for name, text in re.findall(r"^```python\n# (\w+\.py)\n(.+?)^```", PAGE, re.MULTILINE | re.DOTALL)
}


def test_each_block_of_the_tutorial_is_a_file() -> None:
    assert list(FILES) == ["shop.py", "api.py", "conftest.py", "test_shop.py"]
    assert PAGE.count("```python") == len(FILES)
    assert all(ast.parse(text) for text in FILES.values())


def written(folder: Path) -> None:
    for name, text in FILES.items():
        (folder / name).write_text(text, "utf-8")


def settings(url: str | None) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("FENCEROW_", "PYTEST"))}
    more = {} if url is None else {"FENCEROW_URL": url}
    return {**kept, "PYTHONPATH": module_path(ROOT / "src"), **more}


@contextmanager
def started(words: list[str], folder: Path, url: str) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-m", *words], cwd=folder, env=settings(url), stderr=subprocess.PIPE, text=True
    )
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.communicate(timeout=PATIENCE_S)
        finally:
            process.kill()


def address(door: subprocess.Popen[str]) -> str:
    """Where it answers, as its log says."""
    said = []
    for line in door.stderr or ():
        said.append(line)
        if found := re.search(r"running on (http://[\d.]+:\d+)", line):
            return found[1]
    pytest.fail("".join(said))


@pytest.mark.prove
def test_the_service_and_two_workers_do_what_the_tutorial_says(
    tmp_path: Path, server: PostgresServer, empty_postgres_url: str
) -> None:
    with server.connect(str(conninfo_to_dict(empty_postgres_url)["dbname"])) as owner:
        owner.execute("GRANT CREATE ON SCHEMA public TO PUBLIC")  # as `createdb` lets its reader
    written(tmp_path)
    run = [sys.executable, "-m", "fencerow"]
    subprocess.run([*run, "migrate"], cwd=tmp_path, env=settings(empty_postgres_url), check=True)

    service = ["uvicorn", "api:api", "--port", "0"]
    workers = ["fencerow", "worker", "-A", "shop:app", "--processes", "2"]
    with (
        started(service, tmp_path, empty_postgres_url) as door,
        started(workers, tmp_path, empty_postgres_url),
    ):
        base = address(door)
        asked = httpx.post(f"{base}/reports", params={"customer": "ada"})
        looked = httpx.get(f"{base}/reports/1")
        for _ in range(1000):
            if looked.json()["state"] == "ready":
                break
            looked = httpx.get(f"{base}/reports/1")
        nobody = httpx.get(f"{base}/reports/7")

    assert (asked.status_code, asked.json()) == (202, {"report": 1})
    assert looked.json() == {"state": "ready", "text": "All is well with ada."}
    assert nobody.status_code == 404


@pytest.mark.prove
def test_the_tests_of_the_tutorial_pass(tmp_path: Path) -> None:
    written(tmp_path)
    (tmp_path / "pytest.ini").write_text("[pytest]\n", "utf-8")

    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"],
        cwd=tmp_path,
        env=settings(None),
        capture_output=True,
        text=True,
        timeout=4 * PATIENCE_S,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 passed" in done.stdout
