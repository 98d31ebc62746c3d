"""Records what commands show at a terminal, into docs/views.md: python3 -m tools.views > docs/views.md

Each command is the real one, in a terminal of its own (a pty) with 80 and then 120 columns. `jobs list`, `why` and
`top` look at a SQLite file that is filled here with fixed ids, and their clock is fixed, so that nothing varies.
`worker` and `dev` really run jobs; RULES says what is written in place of what varies.
"""

from __future__ import annotations

import os
import pty
import re
import select
import socket
import struct
import sys
import tempfile
import termios
import time
from collections.abc import Callable, Iterator, Sequence
from fcntl import ioctl
from pathlib import Path
from typing import NoReturn

import msgspec

from fencerow.cli import logs
from fencerow.cli.main import run as command
from fencerow.core.model.job import NewJob, Template
from fencerow.core.model.wanted import SlotGroupNow, Stated
from fencerow.core.store import store
from fencerow.core.store.claims import Mark
from fencerow.db.sqlite import SqliteEngine
from fencerow.db.sqlite_connection import HostClock
from fencerow.operators.queues import pause_queue

WIDTHS = (80, 120)
LINES = 40
PATIENCE_S = 60.0
NOW_US = 1_795_378_504_000_000  # 2026-11-22T20:15:04Z
MINUTE_US = 60_000_000
PLACE = "/srv/shop"

SHOP = '''"""The application of docs/views.md."""

from fencerow import App, Fail, Job

app = App()


@app.job(queue="mail")
async def send(job: Job, to: str, order: int | None = None) -> None:
    await job.log("accepted by the server")
    if order is not None:  # stored with this job's success, so it starts behind that
        job.submit_next(render.call(order))


@app.job(queue="mail")
async def render(order: int) -> None:
    raise Fail("the template has no price")
'''

HEAD = """# What commands show

`tools/views.py` records this page, and a test compares them. Each command ran at a terminal with 80 columns, and then
with 120. [cli.md](cli.md#output) says how tables fit their width.

`jobs list`, `why` and `top` looked at a SQLite file with fixed ids, at a fixed time. The logs of `worker` and `dev` are
from real runs; a log has no width, so the terminal breaks its lines. What varies from run to run is written like this:

| what varies | on this page |
|---|---|
"""


# --- what varies ------------------------------------------------------------------------------------------------

HOST = re.escape(socket.gethostname())
RULES: tuple[tuple[str, str, str], ...] = (
    ("the time of day", r"\b\d\d:\d\d:\d\d\.\d{3}\b", "20:15:04.000"),
    ("how long a job took", r"\bafter \d\.\d{3} s", "after 0.010 s"),
    ("the version of Fencerow", r"\bfencerow \d[\w.+]*", "fencerow 1.0.0"),
    ("the version of Python", r"\bPython \d[\w.+]*", "Python 3.12.1"),
    ("the version of SQLite", r"\bSQLite \d[\d.]*", "SQLite 3.51.3"),
    ("the name of the host, and the number of the process", rf"\b{HOST}-\d+", "web-4711"),
    ("the number of the process, by itself", r"\bprocess \d+", "process 4711"),
)
ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}")


def normal(text: str, folder: Path) -> str:
    """The text with all that varies written by RULES; ids are counted, the working directory is PLACE."""
    text = text.replace(str(folder), PLACE)
    for _, found, written in RULES:
        text = re.sub(found, written, text)
    for number, each in enumerate(dict.fromkeys(ID.findall(text)), 1):
        text = text.replace(each, job_id(number))
    return text


def job_id(number: int) -> str:
    return f"01a2053c-a6c4-744a-bd0e-fe6b47b3{number:04x}"


def folded(text: str, width: int) -> Iterator[str]:
    """Lines as a terminal breaks them."""
    for line in text.splitlines():
        yield line[:width]
        for at in range(width, len(line), width):
            yield line[at : at + width]


# --- a terminal -------------------------------------------------------------------------------------------------


class Shown:
    """A command at a terminal of so many columns: what it showed so far, in `text`."""

    def __init__(self, words: Sequence[str], width: int, environ: dict[str, str], *, frozen: bool) -> None:
        self.text = ""
        self._pid, self._terminal = pty.fork()
        if self._pid == 0:
            _become(words, width, environ, frozen=frozen)

    def until(self, text: str) -> None:
        """Read until this was shown."""
        while text not in self.text:
            if not self._read():
                raise RuntimeError(f"{text!r} was not shown, but: {self.text}")

    def type(self, keys: str) -> None:
        os.write(self._terminal, keys.encode())

    def ended(self) -> str:
        """All that it showed, when it has ended."""
        while self._read():
            pass
        _, status = os.waitpid(self._pid, 0)
        os.close(self._terminal)
        if status != 0:
            raise RuntimeError(f"it ended with {os.waitstatus_to_exitcode(status)}: {self.text}")
        return self.text.replace("\r\n", "\n")

    def _read(self) -> bool:
        """One piece more; false when it has ended."""
        if not select.select([self._terminal], [], [], PATIENCE_S)[0]:
            raise RuntimeError(f"nothing more came in {PATIENCE_S:g} s: {self.text}")
        try:
            piece = os.read(self._terminal, 65536)
        except OSError:  # Linux says so of a terminal that its last process has left
            return False
        self.text += piece.decode()
        return bool(piece)


def _become(words: Sequence[str], width: int, environ: dict[str, str], *, frozen: bool) -> NoReturn:
    """In the new process: run the command line and end. Nothing of the recording is unwound here."""
    ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, width, 0, 0))
    for name in [name for name in os.environ if name.startswith(("FENCEROW", "COLUMNS", "LINES"))]:
        del os.environ[name]
    os.environ.update(environ)
    os.chdir(environ["PWD"])
    if frozen:
        HostClock.now_us = lambda _self: NOW_US  # type: ignore[method-assign]
        time.monotonic = lambda: 0.0
    logs.quiet()
    code = command(list(words))
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


# --- the database of the tables ---------------------------------------------------------------------------------


class Fixed(HostClock):
    """Stands still until somebody moves it."""

    def __init__(self) -> None:
        self.at_us = NOW_US

    def now_us(self) -> int:
        return self.at_us


def fill(path: Path) -> None:
    """Two workers, and jobs of every state."""
    clock = Fixed()
    engine = SqliteEngine(path, store.sqlite_queries(), clock=clock)
    try:
        store.migrate(engine)
        _fill(engine, clock)
    finally:
        engine.close()


def _fill(engine: SqliteEngine, clock: Fixed) -> None:
    clock.at_us = NOW_US - 50 * MINUTE_US
    _submit(engine, 1, "mail", "send", '{"to":"ada"}', tags='["vip"]')
    _submit(engine, 2, "documents", "render", '{"order":5}', attempts_max=1)
    _submit(engine, 3, "mail", "send", '{"to":"grace"}', delay_s=3 * 3_600)
    web = _worker(engine, 101, "web-1", "mail", 6, running=0)
    docs = _worker(engine, 102, "documents-1", "documents", 2, running=1)
    sent = _claim(engine, web, "mail", "send")
    clock.at_us += 2_000_000
    engine.run(store.succeed([store.Success(sent, 1, '{"sent":true}')], holder=web))
    clock.at_us = NOW_US - 30_000_000
    broken = _claim(engine, docs, "documents", "render")
    error = '{"type":"ValueError","message":"order 5 has a price of -1"}'
    engine.run(store.fail([store.Failure(broken, 1, error)], holder=docs))
    engine.run(pause_queue("reports", actor="ada@web", reason="the printer is away"))
    clock.at_us = NOW_US - 20_000_000
    _submit(engine, 4, "documents", "render", '{"order":6}')
    _submit(engine, 5, "reports", "month", "{}")
    _submit(engine, 6, "mail", "send", '{"to":"mary"}')
    _submit(engine, 7, "mail", "send", '{"to":"joan"}')
    rendered = _claim(engine, docs, "documents", "render")
    engine.run(store.progress(rendered, holder=docs, attempt=1, percent=40.0, note="page 2 of 5"))
    engine.run(store.cancel(job_id(7), actor="ada@web", reason=None))
    clock.at_us = NOW_US - 3_000_000
    for holder in (web, docs):
        assert engine.run(store.renew(holder=holder))


def _submit(engine: SqliteEngine, number: int, queue: str, name: str, args: str, **more: object) -> None:
    template = Template(**{"queue": queue, "name": name, **more})  # type: ignore[arg-type]
    engine.run(store.submit([NewJob(job_id(number), args, len(args), template)]))


def _worker(engine: SqliteEngine, number: int, name: str, queue: str, slots: int, *, running: int) -> str:
    said = Stated(0, (SlotGroupNow((queue,), slots, running, running, 0.5),))
    names = {"mail": ["send"], "documents": ["render", "month"]}[queue]
    info = {"queues": [queue], "slots": slots, "version": "1.0.0", "names": names}
    made = store.register(
        holder=job_id(number),
        name=name,
        host="web",
        pid=4711,
        info=msgspec.json.encode(info).decode(),
        lease_s=3_600.0,
        stated=msgspec.json.encode(said).decode(),
    )
    assert engine.run(made)
    return job_id(number)


def _claim(engine: SqliteEngine, holder: str, queue: str, name: str) -> str:
    wanted = store.claim(queue, [Mark(0)], holder=holder, names=[name], limit=1, margin_s=60.0)
    (claimed,) = engine.run(wanted)
    return claimed.id


# --- the page ---------------------------------------------------------------------------------------------------


def page() -> str:
    """The whole page."""
    with tempfile.TemporaryDirectory(prefix="fencerow-views-") as made:
        folder = Path(made).resolve()
        folder.joinpath("shop.py").write_text(SHOP)
        lines = [HEAD.rstrip("\n"), *_rules()]
        fill(folder / "views.db")
        for title, words in TABLES:
            lines += ["", f"## {title}"]
            for width in WIDTHS:
                lines += _block(words, width, _table(words, width, folder))
        for title, words, record in LOGS:
            text = normal(record(words, folder), folder)
            lines += ["", f"## {title}"]
            for width in WIDTHS:
                lines += _block(words, width, "\n".join(folded(text, width)))
    return "\n".join(lines) + "\n"


def _rules() -> Iterator[str]:
    for what, _, written in RULES:
        yield f"| {what} | `{written}` |"
    yield f"| an id | `{job_id(1)}` and those that follow it |"
    yield f"| the working directory | `{PLACE}` |"


def _block(words: Sequence[str], width: int, text: str) -> Iterator[str]:
    yield from ("", f"At {width} columns:", "", "```")
    yield f"$ fencerow {' '.join(words)}"
    yield from (line.rstrip() for line in text.splitlines())
    yield "```"


def _table(words: Sequence[str], width: int, folder: Path) -> str:
    shown = Shown(words, width, _environ(folder, "views.db"), frozen=True)
    return shown.ended()


def _worker_log(words: Sequence[str], folder: Path) -> str:
    environ = _environ(folder, "worker.db")
    Shown(("submit", "-A", "shop", "send", "to=ada", "order=5"), 80, environ, frozen=False).ended()
    return Shown(words, WIDTHS[-1], environ, frozen=False).ended()


def _dev_log(words: Sequence[str], folder: Path) -> str:
    environ = _environ(folder, "dev.db")
    shown = Shown(words, WIDTHS[-1], environ, frozen=False)
    shown.until("waits for jobs")
    Shown(("submit", "-A", "shop", "send", "to=ada"), 80, environ, frozen=False).ended()
    shown.until("succeeded after")
    shown.type("\x03")
    return shown.ended().replace("^C", "")


def _environ(folder: Path, file: str) -> dict[str, str]:
    url = f"sqlite:///{folder / file}"
    return {"FENCEROW_URL": url, "PWD": str(folder), "NO_COLOR": "1", "TERM": "xterm", "TZ": "UTC"}


TABLES = (
    ("jobs list", ("jobs", "list")),
    ("why", ("why", job_id(5))),
    ("top", ("top", "--once")),
)
LOGS: tuple[tuple[str, tuple[str, ...], Callable[[Sequence[str], Path], str]], ...] = (
    ("worker", ("worker", "-A", "shop", "--drain", "--slots", "1"), _worker_log),
    ("dev", ("dev", "-A", "shop", "--slots", "1", "--no-dashboard"), _dev_log),
)

if __name__ == "__main__":
    sys.stdout.write(page())
