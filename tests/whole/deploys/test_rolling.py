"""Workers and clients of a kept release run on through a migration, beside those of what may come next (`coming`).

In the middle jobs come that only the next release understands: refused while an older worker lives, and kept then.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from fencerow import App
from fencerow.core.model import rules
from fencerow.core.store import store
from fencerow.errors import OlderWorkers
from fencerow.operators import looking
from tests.kit.loops import module_path
from tests.kit.pace import PATIENCE_S
from tests.whole.deaths.crew import wait_until
from tests.whole.deploys.coming import RULE

pytestmark = [pytest.mark.timed, pytest.mark.prove]

MEMBER = Path(__file__).with_name("member.py")
SOURCES = MEMBER.parents[3] / "src"
COMING = "coming"  # beside the member
RELEASES = sorted(MEMBER.parent.glob("*.zip"))
IN_TURN = 20  # jobs of one key
COUNT_MAX = 5_000  # more than any client submits before it is told to stop

PLANNED = re.compile(r"\(shaky\) attempt \d+ failed.*, next attempt")

# A machine that has too much to do stops a process as a debugger would. The keeper's word about that is true and no
# fault of the deploy, as long as no lease ends by it: then an attempt would be taken back, and its history tell so. Its
# list of what is held comes late then too, so that the worker lets go what it has ended meanwhile.
STOPPED = re.compile(
    r"^WARNING fencerow\.worker(\.keeper the lease is renewed \d+\.\d s late: "
    r"(this process was stopped for a while$|code here keeps the interpreter lock .* or the machine is overloaded)"
    r"| job \S+ attempt \d+ is ours but unknown here \(a lost reply\); letting it go$)"
)


class Fleet:
    """Processes of one release on one database, and what they wrote to their log."""

    def __init__(self, sources: Path, url: str, log: Path, *, brings: str = "") -> None:
        self._environment = environment(sources, brings)
        self._url = url
        self._log = log
        self._members: list[subprocess.Popen[str]] = []

    def start(self, role: str, *arguments: str) -> subprocess.Popen[str]:
        """Start one and wait until it says that it is at work."""
        with self._log.open("a") as errors:
            member = subprocess.Popen(
                [sys.executable, str(MEMBER), role, self._url, *arguments],
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )
        self._members.append(member)
        assert member.stdout is not None
        line = member.stdout.readline()
        assert line, f"{role} ended at once: {self.log()}"
        return member

    def stop(self, member: subprocess.Popen[str]) -> str:
        """Ask it to stop as an operator does; returns what it said last."""
        member.send_signal(signal.SIGTERM)
        said, _ = member.communicate(timeout=PATIENCE_S)
        assert member.returncode == 0, self.log()
        return said

    def end(self) -> None:
        for member in self._members:
            if member.poll() is None:
                member.kill()
                member.wait()
            if member.stdout is not None:
                member.stdout.close()

    def log(self) -> str:
        return self._log.read_text() if self._log.exists() else ""


@pytest.fixture(params=RELEASES, ids=lambda path: path.stem)
def release(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """The code of an earlier release."""
    zipfile.ZipFile(request.param).extractall(tmp_path / "release")
    return tmp_path / "release"


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest) -> str:
    """A database without any tables of ours."""
    if request.param == "postgres":
        made: str = request.getfixturevalue("empty_postgres_url")
        return made
    return f"sqlite:///{request.getfixturevalue('sqlite_path')}"


@pytest.fixture
def fleets(url: str, release: Path, tmp_path: Path) -> Iterator[tuple[Fleet, Fleet]]:
    """The processes of the release before, and those of this one."""
    old = Fleet(release, url, tmp_path / "old.log")
    new = Fleet(SOURCES, url, tmp_path / "new.log", brings=COMING)
    yield old, new
    old.end()
    new.end()


def environment(sources: Path, brings: str) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": module_path(sources), "BRINGS": brings}


def run_member(sources: Path, url: str, role: str, *, brings: str = "") -> str:
    done = subprocess.run(
        [sys.executable, str(MEMBER), role, url],
        env=environment(sources, brings),
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_release_before_runs_on_through_a_migration(
    url: str, release: Path, fleets: tuple[Fleet, Fleet], monkeypatch: pytest.MonkeyPatch
) -> None:
    old, new = fleets
    monkeypatch.setattr(rules, "KNOWN", (*rules.KNOWN, RULE))
    run_member(release, url, "migrate")
    with App(url, actor="test") as app:
        prefix = "fencerow." if app.engine.dialect == "postgres" else "fencerow_"
        name = f"{prefix}effect"
        with app.engine.session() as session:
            session.connection.execute(f"CREATE TABLE {name} (job text)")
        steps_before = applied(app)
        old_workers = [old.start("worker"), old.start("worker")]
        old_client = old.start("client", str(COUNT_MAX))

        run_member(SOURCES, url, "migrate", brings=COMING)  # while they work
        steps_after = applied(app)
        # The old code may start on the new tables too.
        new_workers = [new.start("worker"), old.start("worker")]
        new_client = new.start("client", str(COUNT_MAX))
        finished_at_least(app, 300)
        in_turn = app.job(name="effect", exclusive="one at a time")(effect)
        with pytest.raises(OlderWorkers, match="3 living workers"):
            in_turn.submit(-1)
        accepted = [counted(old.stop(old_client))]
        for member in [*old_workers, new_workers.pop()]:
            old.stop(member)
        turns = [in_turn.submit(-1 - number).id for number in range(IN_TURN)]
        accepted.append(counted(new.stop(new_client)))
        wait_until(lambda: live(app) == 0, lambda: f"{live(app)} jobs left\n{old.log()}\n{new.log()}")
        for member in new_workers:
            new.stop(member)

        assert finished(app) == {"succeeded": sum(accepted) + IN_TURN}
        assert one_at_a_time(app, turns)
        with app.engine.session() as session:
            effects = [row[0] for row in session.connection.execute(f"SELECT job FROM {name}").fetchall()]
            taken_back = f"SELECT job_id FROM {prefix}job_events WHERE kind = 'reclaimed'"
            assert session.connection.execute(taken_back).fetchall() == [], "no worker was thought dead"
        assert len(effects) == len(set(effects)) == IN_TURN + sum((count + 1) // 2 for count in accepted)
        assert steps_after > steps_before, "there is a step between the two releases"
    assert unplanned(new.log()) == []
    assert unplanned(old.log()) == []


def effect(number: int) -> None:
    """It runs in the members."""


def one_at_a_time(app: App, ids: list[str]) -> bool:
    """Whether none of these was claimed before the one that was claimed before it had ended."""
    found = app.engine.run(store.read(ids)).values()
    spans = sorted((job.claimed_at_us or 0, job.ended_at_us or 0) for job in found)
    return all(ended <= claimed for (_, ended), (claimed, _) in pairwise(spans))


def applied(app: App) -> int:
    """How many schema steps the database has had."""
    name = "fencerow.schema_migrations" if app.engine.dialect == "postgres" else "fencerow_schema_migrations"
    return len(app.engine.run(store.ledger(name)))


def counted(said: str) -> int:
    return int(said.split()[-1])


def live(app: App) -> int:
    return sum(each.jobs for each in app.engine.run(looking.counts()))


def finished(app: App) -> dict[str, int]:
    return {state.value: count for _, state, count in app.engine.run(looking.finished_counts())}


def finished_at_least(app: App, count: int) -> None:
    wait_until(lambda: sum(finished(app).values()) >= count, lambda: f"{finished(app)}")


def unplanned(log: str) -> list[str]:
    """What the log tells beside the planned failures, a file that was locked for a moment, and a machine that was busy.

    An attempt that was handed back before it began has a number too, so the planned failure may be that of any.
    """
    told = [line for line in log.splitlines() if line.startswith(("ERROR", "CRITICAL", "WARNING"))]
    return [line for line in told if not (PLANNED.search(line) or STOPPED.match(line) or "FR-504" in line)]
