"""The runbook of docs/operations.md shows what its commands really show: played one after the other on one database.

The clock stands still, and ids that are made on the way are written in the order in which they come. After a change of
what a command shows, `python -m tests.whole.guide.test_operations` writes the page anew.
"""

from __future__ import annotations

import re
import shlex
import tempfile
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path

import msgspec
import pytest

from fencerow import App
from fencerow.cli import main
from fencerow.core.model.job import NewJob, Template
from fencerow.core.model.wanted import SlotGroupNow, Stated
from fencerow.core.store import store
from fencerow.core.store.claims import Mark
from fencerow.db.sqlite_connection import HostClock
from fencerow.schedules.ticking import tick
from fencerow.turns import handing
from tests.house.tree import ROOT
from tests.kit.environment import forget_settings

PAGE = ROOT / "docs" / "operations.md"
NOW_US = 1_795_378_504_000_000  # 2026-11-22T20:15:04Z
HOUR_US = 3_600_000_000
PARTS = re.compile(r"^### ([^\n]+)$|^```console\n(.+?)^```$", re.MULTILINE | re.DOTALL)
ID = re.compile(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b")
OURS = "0193f2a1-0000-7000-8000-"
MAIL, LATER, SYNC, NEXT_SYNC = range(1, 5)  # the jobs that the page names
WORKER = 101
MADE = 901  # what commands make


def uid(number: int) -> str:
    return f"{OURS}{number:012d}"


class Night:
    """What somebody has to deal with: mail, an hourly report, two syncs of one account, and a job that hangs."""

    def __init__(self) -> None:
        self.now_us = NOW_US
        self._ids: dict[str, str] = {}
        self.app = App()

        @self.app.job(queue="reports")
        def report() -> None: ...

        self.app.schedule(report, cron="0 * * * *")
        self.scenes: dict[str, Callable[[], None]] = {
            "Stop a queue": self._mail,
            "Run something now": self._later,
            "A key that is stuck": self._account,
            "A worker that hangs": self._hung,
            "Catch up after an outage": self._outage,
        }

    def start(self) -> None:
        self.app.check_or_create()
        self.app.schedules.reconcile()
        self._registered()

    # --- what happens --------------------------------------------------------------------------------------

    def _mail(self) -> None:
        self._submit(MAIL, queue="mail", name="send")

    def _later(self) -> None:
        self._submit(LATER, queue="mail", name="send", delay_s=3 * 3_600.0)

    def _account(self) -> None:
        self._reported()
        for number in (SYNC, NEXT_SYNC):
            self._submit(number, queue="default", name="sync", exclusive="account-7")
        self._claim("default", "sync")
        self.now_us += 2 * HOUR_US
        self._renew()
        self.app.engine.run(tick())
        self._reported()

    def _hung(self) -> None:
        self.now_us += HOUR_US // 2
        self._renew()

    def _outage(self) -> None:
        self.now_us += 3 * HOUR_US

    # --- how -------------------------------------------------------------------------------------------------

    def _registered(self) -> None:
        said = Stated(0, (SlotGroupNow(("default", "mail", "reports"), 4, 1),), held=1)
        info = {"queues": {"default": 4, "mail": 4, "reports": 4}, "slots": 4, "version": "1.0.0"}
        made = store.register(
            holder=uid(WORKER),
            name="web-1",
            host="db1",
            pid=4711,
            info=msgspec.json.encode({**info, "names": ["report", "send", "sync"]}).decode(),
            lease_s=30.0,
            stated=msgspec.json.encode(said).decode(),
        )
        assert self.app.engine.run(made)

    def _renew(self) -> None:
        assert self.app.engine.run(store.renew(holder=uid(WORKER)))

    def _submit(
        self, number: int, *, queue: str, name: str, exclusive: str | None = None, delay_s: float = 0.0
    ) -> None:
        job = NewJob(uid(number), "{}", 2, Template(queue=queue, name=name, delay_s=delay_s), exclusive)
        run = self.app.engine.run
        run((store.submit if exclusive is None else store.submit_gated)([job]))
        if exclusive is not None:
            run(handing.hand_over())

    def _claim(self, queue: str, name: str) -> str:
        claim = store.claim(queue, [Mark(0)], holder=uid(WORKER), names=[name], limit=1, margin_s=60.0)
        (claimed,) = self.app.engine.run(claim)
        return claimed.id

    def _reported(self) -> None:
        """The report that is due is written."""
        done = store.Success(self._claim("reports", "report"), 1, "null")
        assert self.app.engine.run(store.succeed([done], holder=uid(WORKER)))

    # --- the page ----------------------------------------------------------------------------------------------

    def replayed(self, page: str) -> str:
        """The page with what its commands show now."""
        return PARTS.sub(self._part, page)

    def _part(self, found: re.Match[str]) -> str:
        title, block = found[1], found[2]
        if block is None:
            self.scenes.get(title, lambda: None)()
            return found[0]
        commands = [line for line in block.splitlines() if line.startswith("$ fencerow ")]
        return "```console\n" + "\n\n".join(self._shown(each) for each in commands) + "\n```"

    def _shown(self, line: str) -> str:
        out = StringIO()
        with redirect_stdout(out), redirect_stderr(out):
            main.run(shlex.split(line, comments=True)[2:])
        text = "\n".join(each.rstrip() for each in out.getvalue().splitlines())
        return f"{line}\n{ID.sub(self._written, text)}"

    def _written(self, found: re.Match[str]) -> str:
        """An id of ours as it is; one that was made on the way by its number."""
        if found[0].startswith(OURS):
            return found[0]
        return self._ids.setdefault(found[0], uid(MADE + len(self._ids)))


def replayed(folder: Path, patch: pytest.MonkeyPatch) -> str:
    """The page, with what its commands show on a database that is made for them."""
    forget_settings(patch)
    patch.delenv("COLUMNS", raising=False)
    patch.setenv("FENCEROW_URL", f"sqlite:///{folder}/night.db")
    patch.setenv("FENCEROW_ACTOR", "ada@web")
    night = Night()
    patch.setattr(HostClock, "now_us", lambda _self: night.now_us)
    with night.app:
        night.start()
        return night.replayed(PAGE.read_text("utf-8"))


def test_its_commands_show_what_the_page_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = PAGE.read_text("utf-8")

    assert len(re.findall(r"^\$ fencerow ", page, re.MULTILINE)) >= 12
    assert replayed(tmp_path, monkeypatch) == page


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made, pytest.MonkeyPatch.context() as patches:
        PAGE.write_text(replayed(Path(made), patches), "utf-8")
