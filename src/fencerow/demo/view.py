"""How the demo shows itself: a live table in a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, Protocol

import msgspec

from fencerow.core.errors import MissingExtra
from fencerow.core.model.job import Happening, JobRecord
from fencerow.core.model.state import State
from fencerow.core.telemetry import clean
from fencerow.demo.model import Extraction

FIELDS_SHOWN = 4

Row = tuple[str, JobRecord]


class View(Protocol):
    """What the show says and shows."""

    def say(self, text: str) -> None: ...

    def live(self) -> AbstractContextManager[None]: ...

    def show(self, rows: Sequence[Row], workers: Mapping[str, str]) -> None: ...

    def results(self, rows: Sequence[Row]) -> None: ...

    def timeline(self, name: str, happenings: Sequence[Happening]) -> None: ...

    def wait_for_user(self) -> None: ...


def make_view() -> View:
    """A live view for a terminal, a plain one for a pipe or a file."""
    return TerminalView() if sys.stdout.isatty() else PlainView()


class PlainView:
    """One line for each change."""

    def __init__(self) -> None:
        self._shown: dict[str, str] = {}

    def say(self, text: str) -> None:
        print(text, flush=True)

    def live(self) -> AbstractContextManager[None]:
        return nullcontext()

    def show(self, rows: Sequence[Row], workers: Mapping[str, str]) -> None:
        for name, record in rows:
            line = described(record, workers)
            if self._shown.get(name) != line:
                self._shown[name] = line
                self.say(f"  {name:32} {line}")

    def results(self, rows: Sequence[Row]) -> None:
        for name, record in rows:
            self.say(f"\n{name}: {ending(record)}")
            for line in field_lines(record):
                self.say(f"    {line}")

    def timeline(self, name: str, happenings: Sequence[Happening]) -> None:
        self.say(f"\nWhat happened to {name}:")
        for line in timeline_lines(happenings):
            self.say(f"    {line}")
        self.say("")

    def wait_for_user(self) -> None:
        """Nobody is there to wait for."""


class TerminalView(PlainView):
    """A table that is redrawn in place."""

    def __init__(self) -> None:
        super().__init__()
        try:
            from rich.console import Console
            from rich.live import Live
        except ImportError as error:
            raise MissingExtra(
                "the demo's live view needs rich", "it is not installed", "pip install 'fencerow[demo]'"
            ) from error
        self._console = Console()
        self._make_live = Live
        self._running: Any = None

    def say(self, text: str) -> None:
        self._console.print(text, markup=False, highlight=False)

    @contextmanager
    def _lively(self) -> Iterator[None]:
        with self._make_live(console=self._console, auto_refresh=False) as running:
            self._running = running
            try:
                yield
            finally:
                self._running = None

    def live(self) -> AbstractContextManager[None]:
        return self._lively()

    def show(self, rows: Sequence[Row], workers: Mapping[str, str]) -> None:
        from rich.table import Table

        table = Table("document", "state", "progress", "attempt", "worker", box=None, pad_edge=False)
        for name, record in rows:
            table.add_row(
                clean(name),
                f"[{COLOURS[record.state]}]{record.state}[/]",
                bar(record),
                str(record.attempt or ""),
                workers.get(record.holder or "", "") if record.state is State.RUNNING else "",
            )
        if self._running is not None:
            self._running.update(table, refresh=True)

    def wait_for_user(self) -> None:
        self.say("Press Enter to end.")
        try:
            input()
        except (EOFError, KeyboardInterrupt):
            pass


COLOURS = {
    State.WAITING: "dim",
    State.QUEUED: "dim",
    State.RUNNING: "yellow",
    State.SUCCEEDED: "green",
    State.FAILED: "red",
    State.CANCELLED: "magenta",
}


def bar(record: JobRecord) -> str:
    """A bar for what the attempt said of itself."""
    percent = record.progress or 0.0
    full = round(percent / 10)
    return f"{'━' * full}{' ' * (10 - full)} {percent:3.0f} %  {record.progress_note or ''}"


def described(record: JobRecord, workers: Mapping[str, str]) -> str:
    """One job in one line."""
    if record.state is not State.RUNNING:
        return f"{record.state}" + (f" after {record.attempt} attempts" if record.attempt > 1 else "")
    worker = workers.get(record.holder or "", "")
    progress = f", {record.progress:.0f} % ({record.progress_note})" if record.progress else ""
    return f"running on {worker or 'a worker'}, attempt {record.attempt}{progress}"


def ending(record: JobRecord) -> str:
    """How a job ended."""
    if record.state is State.SUCCEEDED:
        found = msgspec.convert(record.result, Extraction)
        counts = f"{len(found.fields)} fields, {found.words} words, {found.pages} pages"
        return f"succeeded in attempt {record.attempt}: {counts}"
    reason = record.error.get("message", "") if isinstance(record.error, dict) else ""
    return f"{record.state} in attempt {record.attempt}: {clean(str(reason))}"


def field_lines(record: JobRecord) -> list[str]:
    """The first fields of a result with their boxes, in points from the top left of the page."""
    if record.state is not State.SUCCEEDED:
        return []
    found = msgspec.convert(record.result, Extraction)
    lines = [
        f"{field.name:16} {clean(field.value)[:44]:44} page {field.box.page}, "
        f"box {field.box.left:.0f},{field.box.top:.0f} to {field.box.right:.0f},{field.box.bottom:.0f}"
        for field in found.fields[:FIELDS_SHOWN]
    ]
    more = len(found.fields) - FIELDS_SHOWN
    return [*lines, f"… and {more} more"] if more > 0 else lines


def timeline_lines(happenings: Sequence[Happening]) -> list[str]:
    """A job's timeline, each line with its seconds since the first."""
    start = happenings[0].at_us if happenings else 0
    return [
        f"{(each.at_us - start) / 1e6:7.2f} s  {each.kind:12} attempt {each.attempt}  {clean(each.actor or '')}"
        for each in happenings
    ]
