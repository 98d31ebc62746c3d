"""How the demo shows itself: a live table in a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from fencerow.core.errors import MissingExtra
from fencerow.core.model.job import Happening, JobRecord
from fencerow.core.model.state import State
from fencerow.db.text import amount, clean
from fencerow.demo.model import Extraction

if TYPE_CHECKING:
    from rich.table import Table

FIELDS_SHOWN = 4
BAR_WIDTH = 5
NAME_LEAST = 12
OTHERS_WIDTH = 58  # of all columns but the names

Row = tuple[str, JobRecord]


class View(Protocol):
    """What the show says and shows."""

    def say(self, text: str) -> None: ...

    def live(self) -> AbstractContextManager[None]: ...

    def show(self, rows: Sequence[Row], workers: Mapping[str, str]) -> None: ...

    def results(self, rows: Sequence[Row]) -> None: ...

    def timeline(self, name: str, happenings: Sequence[Happening], workers: Mapping[str, str]) -> None: ...

    def conclude(self, text: str) -> None: ...

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

    def timeline(self, name: str, happenings: Sequence[Happening], workers: Mapping[str, str]) -> None:
        self.say(f"\nWhat happened to {name}:")
        for line in timeline_lines(happenings, workers):
            self.say(f"    {line}")
        self.say("")

    def conclude(self, text: str) -> None:
        """The line for which all of it was shown."""
        self.say(text)

    def wait_for_user(self) -> None:
        """Nobody is there to wait for."""


class TerminalView(PlainView):
    """A table that is redrawn in place. All that stands at the end fits a window of 80 columns and 24 lines."""

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
        if self._running is not None:
            self._running.update(table_of(rows, workers, self._console.width), refresh=True)

    def results(self, rows: Sequence[Row]) -> None:
        """A line for each document: with all their fields, the line that matters would stand below the window."""
        self.say("")
        for name, record in rows:
            self._console.print(
                f"{clean(name)}: {ending(record)}",
                markup=False,
                highlight=False,
                no_wrap=True,
                overflow="ellipsis",
            )

    def conclude(self, text: str) -> None:
        self._console.print(text, markup=False, highlight=False, style="bold")

    def wait_for_user(self) -> None:
        self.say("Press Enter to end; the queue's file is removed then.")
        try:
            input()
        except (EOFError, KeyboardInterrupt):
            pass


def table_of(rows: Sequence[Row], workers: Mapping[str, str], width: int) -> Table:
    """A line for each document, whatever its name: twelve of them fit a window of 80 columns and 24 lines.

    The states are texts with a style, not markup: while a line is printed above the table, markup is not read.
    """
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False)
    room = max(NAME_LEAST, width - OTHERS_WIDTH)
    table.add_column("document", no_wrap=True, overflow="ellipsis", max_width=room)
    for name in ("state", "progress", "page", "attempt", "worker"):
        table.add_column(name, no_wrap=True)
    for name, record in rows:
        table.add_row(
            Text(clean(name)),
            Text(record.state.value, COLOURS[record.state]),
            bar(record),
            Text(clean((record.progress_note or "").removeprefix("page "))),
            str(record.attempt or ""),
            Text(workers.get(record.holder or "", "") if record.state is State.RUNNING else ""),
        )
    return table


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
    full = round(percent / 100 * BAR_WIDTH)
    return f"{'━' * full}{' ' * (BAR_WIDTH - full)} {percent:3.0f} %"


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
        counts = f"{amount(len(found.fields), 'field')}, {amount(found.words, 'word')}, {amount(found.pages, 'page')}"
        return f"succeeded in attempt {record.attempt}: {counts}"
    reason = record.error.get("message", "") if isinstance(record.error, dict) else ""
    return f"{record.state} in attempt {record.attempt}: {clean(str(reason))}"


def field_lines(record: JobRecord) -> list[str]:
    """The first fields of a result with their boxes, in points from the top left of the page."""
    if record.state is not State.SUCCEEDED:
        return []
    found = msgspec.convert(record.result, Extraction)
    lines = [
        f"{field.name:14} {clean(field.value)[:26]:26} page {field.box.page}, "
        f"box {field.box.left:.0f},{field.box.top:.0f} to {field.box.right:.0f},{field.box.bottom:.0f}"
        for field in found.fields[:FIELDS_SHOWN]
    ]
    more = len(found.fields) - FIELDS_SHOWN
    return [*lines, f"… and {more} more"] if more > 0 else lines


def timeline_lines(happenings: Sequence[Happening], workers: Mapping[str, str]) -> list[str]:
    """A job's timeline, each line with its seconds since the first. `workers`: their names by their ids."""
    start = happenings[0].at_us if happenings else 0
    return [
        f"{(each.at_us - start) / 1e6:7.2f} s  {each.kind:12} attempt {each.attempt}  "
        + clean(workers.get(each.actor or "", each.actor or ""))
        for each in happenings
    ]
