"""Lives a newcomer's first hour in a fresh clone, with no more than a Python: python3 -m tools.first_hour

1. `git clone` of the commit that stands here; the README's two commands, as they stand there.
2. The README's first program, in an environment of its own.
3. The tutorial, block by block: FastAPI, PostgreSQL, two workers, tests. What commands say is compared with the page.
4. The guide of jobs over HTTP, with curl, in the same way.

It prints the minutes of each part. Packages come from where pip takes them. A PostgreSQL server of its own answers to
`createdb` and the tutorial's URL, and each port is a free one. Nothing else differs from the pages.
Options: `--tests ARGUMENTS` for `dev.py test` (all tests take a quarter of an hour),
`--evidence FILE`, `--folder PATH`.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tools.first_hour.walk import differs, heard, script, walk

ROOT = Path(__file__).resolve().parents[2]
SERVER = """
import json, shutil, sys
from fencerow.testing.postgres import PostgresServer
with PostgresServer(tcp=True) as server:
    print(json.dumps({"port": server.port, "password": server.password, "bin": str(server.binaries)}), flush=True)
    sys.stdin.read()
"""


class Stumbled(Exception):
    """Something did not go as the page says."""


def main() -> int:
    """Live the hour; 1 if anything was otherwise than on the page."""
    parser = argparse.ArgumentParser(prog="tools.first_hour")
    parser.add_argument("--tests", default="", help="arguments for dev.py test")
    parser.add_argument("--evidence", type=Path)
    parser.add_argument("--folder", type=Path)
    given = parser.parse_args()
    folder = given.folder or Path(tempfile.mkdtemp(prefix="first-hour-"))
    folder.mkdir(exist_ok=True)
    hour = Hour(folder, shlex.split(given.tests))
    try:
        stumbled = hour.lived()
    finally:
        if given.folder is None:
            shutil.rmtree(folder, ignore_errors=True)
    if given.evidence:
        given.evidence.write_text(json.dumps(hour.evidence(), indent=2, ensure_ascii=False) + "\n", "utf-8")
    return 1 if stumbled else 0


class Hour:
    """Each part with what it took, and where it stumbled."""

    def __init__(self, folder: Path, tests: list[str]) -> None:
        self.folder = folder
        self.clone = folder / "fencerow"
        self.tests = tests
        self.commit = ""
        self.took: dict[str, float] = {}
        self.stumbles: list[str] = []

    def lived(self) -> bool:
        """All parts, one after the other. What needs an earlier part that failed fails too."""
        self.part("git clone", self.cloned)
        self.part("README: python3 dev.py demo", lambda: self.said(["python3", "dev.py", "demo"], self.clone))
        self.part(
            "README: python3 dev.py test",
            lambda: self.said(["python3", "dev.py", "test", *self.tests], self.clone),
        )
        self.part("README: install, and its first program", self.first_program)
        with self.server() as environment:
            self.part("tutorial: FastAPI, PostgreSQL, two workers, tests", lambda: self.tutorial(environment))
        self.part("guide: jobs over HTTP with curl", self.over_http)
        say(f"{sum(self.took.values()) / 60:6.1f} min  all of it, {len(self.stumbles)} stumbles")
        return bool(self.stumbles)

    def part(self, name: str, what: Callable[[], object]) -> None:
        began = time.monotonic()
        try:
            what()
        except Stumbled as stumble:
            self.stumbles.append(f"{name}: {stumble}")
            say(f"stumbled: {name}\n{stumble}")
        self.took[name] = time.monotonic() - began
        say(f"{self.took[name] / 60:6.1f} min  {name}")

    def cloned(self) -> None:
        self.said(["git", "clone", "--quiet", str(ROOT), str(self.clone)], self.folder)
        self.commit = self.said(["git", "rev-parse", "HEAD"], self.clone).strip()

    def first_program(self) -> None:
        self.said([sys.executable, "-m", "venv", "hello"], self.folder)
        self.said(["hello/bin/pip", "wheel", "-q", "--no-deps", "-w", "wheels", str(self.clone)], self.folder)
        self.said(["hello/bin/pip", "install", "fencerow"], self.folder, self.pip())
        code = re.search(
            r"^```python\n(.+?)^```", (self.clone / "README.md").read_text("utf-8"), re.MULTILINE | re.DOTALL
        )
        assert code
        (self.folder / "hello.py").write_text(code[1], "utf-8")
        said = self.said(["hello/bin/python", "hello.py"], self.folder)
        if "same job: True replay: True" not in said or "words: 4" not in said:
            raise Stumbled(said)

    def tutorial(self, environment: Mapping[str, str]) -> None:
        port = free_port()
        changes = {
            "uvicorn api:api &": f"uvicorn api:api --port {port} &",
            "localhost:8000": f"localhost:{port}",
        }
        self.followed(
            "docs/tutorial.md", {**changes, "sleep 1": "sleep 15"}, environment
        )  # machines may be slow

    def over_http(self) -> None:
        place = self.folder / "http"
        place.mkdir()
        shutil.copy(self.clone / "examples" / "webhooks" / "receive.py", place)
        more = {
            "VIRTUAL_ENV": str(self.folder / "hello"),
            "PATH": f"{self.folder}/hello/bin:{os.environ['PATH']}",
        }
        self.said(["hello/bin/pip", "install", "fencerow[web]"], self.folder, self.pip())
        changes = {"8080": str(free_port()), "9000": str(free_port())}
        self.followed("docs/guide/http.md", changes, more, place)

    def followed(
        self, name: str, changes: dict[str, str], environment: Mapping[str, str], place: Path | None = None
    ) -> None:
        """A page from top to bottom, in a folder of its own."""
        place = place or self.folder / "tutorial"
        place.mkdir(exist_ok=True)
        page = walk(self.clone / name)
        text = script(page, place, changes)
        try:
            said = self.said(
                ["bash", "-c", text], place, {**self.pip(), **environment}, shown=f"the blocks of {name}"
            )
        finally:
            if os.environ.get("FIRST_HOUR_KEEPS"):
                (place / "script.sh").write_text(text)
        heard(page, said)
        wrong = [
            f"{step.text}it said:\n{step.said}the page shows:\n{step.shown}"
            for step in page.typed
            if differs(step)
        ]
        if wrong:
            raise Stumbled("\n".join(wrong))

    def pip(self) -> dict[str, str]:
        """What makes `pip install fencerow` take the wheel of this clone, as no release is in any index yet."""
        (wheel,) = (self.folder / "wheels").glob("fencerow-*.whl")
        pinned = self.folder / "constraints.txt"
        pinned.write_text(f"fencerow=={wheel.name.split('-')[1]}\n")
        return {
            "PIP_CONSTRAINT": str(pinned),
            "PIP_FIND_LINKS": str(wheel.parent),
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
            "PIP_QUIET": "2",
        }

    @contextmanager
    def server(self) -> Iterator[dict[str, str]]:
        """A PostgreSQL as a newcomer has one: on this machine, for this user, who may make databases."""
        python = self.clone / ".venv" / "bin" / "python"
        with subprocess.Popen(
            [python, "-c", SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=plain({})
        ) as process:
            assert process.stdin and process.stdout
            told = json.loads(process.stdout.readline())
            try:
                yield {
                    "PGHOST": "127.0.0.1",
                    "PGPORT": str(told["port"]),
                    "PGUSER": "postgres",
                    "PGPASSWORD": told["password"],
                    "PATH": f"{os.environ['PATH']}:{told['bin']}",
                }
            finally:
                process.stdin.close()

    def said(
        self, words: list[str], folder: Path, more: Mapping[str, str] | None = None, *, shown: str = ""
    ) -> str:
        """Run a command to its end, with all that it started, and return what it printed."""
        with subprocess.Popen(
            words, cwd=folder, env=plain(more or {}), text=True, start_new_session=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        ) as process:  # fmt: skip
            try:
                output, errors = process.communicate()
            finally:
                end_group(process.pid)
        if process.returncode != 0:
            tail = "\n".join((output + errors).splitlines()[-40:])
            raise Stumbled(f"{shown or shlex.join(words)}: exit code {process.returncode}\n{tail}")
        return output

    def evidence(self) -> dict[str, object]:
        """What is kept of it."""
        return {
            "what": "a newcomer's first hour, literally: python3 -m tools.first_hour",
            "commit": self.commit,
            "python": platform.python_version(),
            "cores": os.cpu_count(),
            "load at the end": round(os.getloadavg()[0], 1),
            "tests": " ".join(self.tests) or "all",
            "minutes": {name: round(took / 60, 2) for name, took in self.took.items()},
            "minutes of all": round(sum(self.took.values()) / 60, 2),
            "stumbles": self.stumbles,
        }


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def end_group(leader: int) -> None:
    """End what a script started beside itself."""
    try:
        os.killpg(leader, signal.SIGTERM)
    except ProcessLookupError:
        return


def plain(more: Mapping[str, str]) -> dict[str, str]:
    """The environment of somebody who has set nothing of ours."""
    ours = ("FENCEROW_", "PYTHON", "PYTEST", "VIRTUAL_ENV", "PG")
    return {name: value for name, value in os.environ.items() if not name.startswith(ours)} | dict(more)


def free_port() -> int:
    with socket.socket() as door:
        door.bind(("127.0.0.1", 0))
        port: int = door.getsockname()[1]
        return port


if __name__ == "__main__":
    sys.exit(main())
