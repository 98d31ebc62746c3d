"""ARCHITECTURE.md leads a stranger along the life of a job: what it names is there, short enough, and the whole way."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from tests.house.tree import ROOT

PAGE = ROOT / "ARCHITECTURE.md"
SOURCE = ROOT / "src" / "fencerow"
FILES = 13
LINES_MAX = 1500
STEPS = ["submit", "stored", "claim", "dispatch", "run", "decide", "acknowledge", "result"]
STOP = re.compile(r"^\| (\w+) \| `(core/[\w/]+\.(?:py|sql))` \| (`.+?`) \| .+ \|$", re.MULTILINE)
PIPELINE = ("core/app/", "core/client/", "core/store/", "core/worker/")
# What a job enters more than twice beside the tour: helpers of several stops. A row may go, none may come.
BESIDE = {
    "core/app/submitter.py": "makes the row of a call before the tour begins",
    "core/client/base.py": "how a client runs a procedure, sync and async",
    "core/client/handle.py": "the handle, whose result asks the poller",
    "core/store/attempts.py": "the verbs of claim.sql and finish.sql, and what the poller reads",
    "core/worker/blocked.py": "watches the loop from a thread; where the machine is busy it is entered more often",
    "core/worker/ageing.py": "which lane comes next; a claim more or less, and it is entered a third time",
    "core/worker/attempt.py": "the record of one attempt: its time limit, its end",
    "core/worker/lease.py": "whether the worker may start anything; asked at each step",
    "core/worker/marks.py": "where the claim of a lane begins",
    "core/worker/roster.py": "the table of attempts; told at each step",
    "core/worker/wakeups.py": "hints in and out",
}
# Its profile says which files the calls enter: as one job goes from submit to result, and as another one fails. The
# first job only warms up.
ONE_JOB = """
import asyncio, json, os, sys, tempfile, threading

import fencerow
from fencerow import App
from fencerow.errors import JobFailed

root = os.path.dirname(fencerow.__file__) + os.sep
app = App("sqlite:///" + os.path.join(tempfile.mkdtemp(), "one.db"))
entered, counting = [], False
told, last = {}, {}  # each thread goes its own way; how they take turns is chance


@app.job
async def count_words(text: str) -> int:
    if not text:
        raise ValueError("no text")
    return len(text.split())


def profile(frame, event, argument):
    name = frame.f_code.co_filename
    if counting and event == "call" and name.startswith(root):
        file, thread = name[len(root):], threading.get_ident()
        if last.get(thread) != file:
            last[thread] = file
            entered.append(file)


async def main():
    global counting
    async with app, app.worker(slots=2):
        await (await count_words.asubmit("warm up")).aresult(timeout_s=30)
        await asyncio.sleep(0.3)
        sys.setprofile(profile)
        for text in ("every row is fenced", ""):
            counting = True
            handle = await count_words.asubmit(text)
            try:
                await handle.aresult(timeout_s=30)
            except JobFailed:
                assert text == ""
            counting = False
            told[text] = entered[:]
            entered.clear()
            last.clear()
        sys.setprofile(None)


threading.setprofile(profile)
asyncio.run(main())
print(json.dumps([told["every row is fenced"], told[""]]))
"""


@dataclass(frozen=True)
class Stop:
    """One row of the tour: at which step, in which file, and what of it is to be read."""

    step: str
    file: str
    names: tuple[str, ...]

    @property
    def path(self) -> Path:
        return SOURCE / self.file


def tour() -> list[Stop]:
    found = STOP.findall(PAGE.read_text("utf-8"))
    return [Stop(step, file, tuple(re.findall(r"`([\w.]+)`", names))) for step, file, names in found]


def passages(stop: Stop) -> dict[str, int]:
    """How many lines each passage has that can be named in the file."""
    text = stop.path.read_text("utf-8")
    if stop.path.suffix == ".sql":
        parts = re.split(r"^-- (?:name|fragment): (\w[\w ]*)$", text, flags=re.MULTILINE)
        return {name: len(part.splitlines()) for name, part in zip(parts[1::2], parts[2::2], strict=True)}
    return dict(_defined(ast.parse(text)))


def _defined(tree: ast.Module) -> Iterator[tuple[str, int]]:
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name, _lines(node)
        for inner in node.body if isinstance(node, ast.ClassDef) else ():
            if isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef):
                yield f"{getattr(node, 'name', '')}.{inner.name}", _lines(inner)


def _lines(node: ast.stmt) -> int:
    return (node.end_lineno or node.lineno) - node.lineno + 1


@cache
def entered() -> tuple[Counter[str], Counter[str]]:
    """How often a job goes into each file, from its submit to its result: one that succeeds, and one that fails."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("FENCEROW_")}
    done = subprocess.run(
        [sys.executable, "-c", ONE_JOB],
        env={**environment, "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    succeeded, failed = json.loads(done.stdout)
    return Counter(succeeded), Counter(failed)


def test_the_tour_skips_no_step_of_a_jobs_life() -> None:
    steps = [stop.step for stop in tour()]
    assert list(dict.fromkeys(steps)) == STEPS, "in this order, and each at least once"


def test_the_tour_has_thirteen_files() -> None:
    files = [stop.file for stop in tour()]
    assert len(files) == len(set(files)) == FILES
    assert [stop.file for stop in tour() if not stop.path.is_file()] == []


def test_what_is_to_be_read_is_there_and_short() -> None:
    missing = [f"{stop.file}: {name}" for stop in tour() for name in stop.names if name not in passages(stop)]
    assert missing == [], "name in ARCHITECTURE.md what is to be read there now"
    lines = {stop.file: sum(passages(stop)[name] for name in stop.names) for stop in tour()}
    assert all(lines.values())
    assert sum(lines.values()) <= LINES_MAX, lines


def test_the_tour_goes_where_a_job_goes() -> None:
    told, (succeeded, failed) = {stop.file for stop in tour()}, entered()
    strange = {file for file in told if file.endswith(".py")} - succeeded.keys() - failed.keys()
    assert strange == set(), "no job goes there: name in ARCHITECTURE.md where it goes now"
    often = {file for file, count in succeeded.items() if count > 2 and file.startswith(PIPELINE)}
    assert len(often) > 5, "the job was not seen"
    assert often - told - BESIDE.keys() == set(), "name them in the tour"


def test_the_page_names_files_of_the_core_that_are_there() -> None:
    named = re.findall(r"`(core/[\w/]+\.(?:py|sql))`", PAGE.read_text("utf-8"))
    assert len(named) > FILES
    assert [name for name in named if not (SOURCE / name).is_file()] == []


@pytest.mark.parametrize(
    "row", ["| run | core/worker/life.py | `Life` | what |", "| run | `core/x.txt` | `X` | what |"]
)
def test_a_row_of_another_form_is_no_stop(row: str) -> None:
    assert STOP.findall(row) == []
