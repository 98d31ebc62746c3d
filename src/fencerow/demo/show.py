"""`fencerow demo`: the main job on real documents, with one worker killed on purpose.

Two worker processes share a SQLite file. When the longest document is under way, its worker gets
SIGKILL; the other takes the job over when the lease has run out. Everything shown is read from the
database by the same library calls that users have.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from statistics import median

from fencerow.core.errors import Busy, FencerowError, InvalidInput
from fencerow.core.model.job import JobRecord
from fencerow.core.store import store
from fencerow.demo.processes import WorkerProcess, environment, start_worker
from fencerow.demo.view import View, make_view

LEASE_S = 3.0
LEASE_SUBMITS = (
    10  # at least so many times what a submit takes: a renewal waits for others' commits, and has a third
)
VICTIM_S = 5.0  # how long the longest document shall take, so that its worker can be killed in the middle
PACE_S = 0.25  # per page of the others
LIMIT_S = 120.0
KILL_AT_PERCENT = 30.0


@dataclass
class Document:
    """One document of the show and the job that reads it."""

    path: Path
    pages: int
    pace_s: float
    job_id: str = ""
    killed: bool = field(default=False)


def main(paths: Sequence[str] = (), *, exit_at_end: bool = False) -> int:
    """Run the show; returns the exit code. Without paths the samples that come with Fencerow are read.

    Raises:
        InvalidInput: a file does not exist or cannot be read. Nothing was started.
    """
    chosen = [_readable(Path(path)) for path in paths] or samples()
    with tempfile.TemporaryDirectory(prefix="fencerow-demo-") as folder:
        database = Path(folder) / "demo.db"
        os.environ.update(environment(database, LEASE_S))
        view = make_view()
        show = _Show(chosen, database, view)
        with show.app:
            show.submit()
            with _in_browser(database, view):
                code = show.run()
                if not exit_at_end and sys.stdout.isatty():
                    view.wait_for_user()
    return code


@contextlib.contextmanager
def _in_browser(database: Path, view: View) -> Iterator[None]:
    """The dashboard beside the show, while the block lasts: where what it needs is installed, and a port can be had."""
    try:
        from fencerow.demo.board import made
        from fencerow.web.dashboard.local import LocalDashboard, open_browser
    except ImportError as error:
        view.say(f"To see it in a browser, too, {error.name} is needed: pip install 'fencerow[demo,web]'")
        yield
        return
    with LocalDashboard(lambda: made(f"sqlite:///{database}")) as local:
        place = f"{local.url}documents"
        is_open = open_browser(place)
        view.say(f"{'Your browser shows it' if is_open else 'See it in a browser'}: {place}")
        yield


def samples() -> list[Path]:
    """The documents that come with the package."""
    folder = files("fencerow.demo").joinpath("samples")
    return sorted(Path(str(entry)) for entry in folder.iterdir() if entry.name.endswith(".pdf"))


class _Show:
    """The acts of the show, in order."""

    def __init__(self, paths: Sequence[Path], database: Path, view: View) -> None:
        # Imported late: the settings are read from the environment that main has just set.
        from fencerow.demo.documents import app, extract

        self.app, self._extract = app, extract
        self._view = view
        self._database = database
        self._documents = _planned(paths)
        self._workers: list[WorkerProcess] = []
        self._lease_s = LEASE_S

    def run(self) -> int:
        try:
            self._workers = [start_worker(f"worker-{number}") for number in (1, 2)]
            self._watch()
        finally:
            for worker in self._workers:
                worker.stop()
        return self._summary()

    def submit(self) -> None:
        """The first act: it makes the tables, too."""
        self._view.say(f"The queue is a SQLite file, {self._database}. No server is running.")
        took_s = []
        for document in self._documents:
            job = self._extract.using(key=_fingerprint(document.path))
            began = time.monotonic()
            document.job_id = job.submit(str(document.path), document.pace_s).id
            took_s.append(time.monotonic() - began)
        self._lease_s = max(LEASE_S, LEASE_SUBMITS * median(took_s))
        os.environ.update(environment(self._database, self._lease_s))  # for the workers
        self._view.say(
            f"Submitted {len(self._documents)} documents, each under its content's hash as the key."
        )
        first = self._documents[0]
        again = self._extract.using(key=_fingerprint(first.path)).submit(str(first.path), first.pace_s)
        same = "the same job" if again.id == first.job_id and again.replay else "ANOTHER JOB"
        self._view.say(f"Submitted {first.path.name} once more: {same}, {again.id}.")

    def _watch(self) -> None:
        deadline = time.monotonic() + LIMIT_S
        with self._view.live():
            while time.monotonic() < deadline:
                # On a disk whose syncs stand still the workers hold the file for long: the next look is as good.
                with contextlib.suppress(Busy):
                    if self._look():
                        return
                if not any(worker.is_alive for worker in self._workers):
                    raise FencerowError("both worker processes ended", self._workers[0].last_words(), "")
                time.sleep(0.1)

    def _look(self) -> bool:
        """Show what the database says now, and kill when it is time; whether all has ended."""
        records = self._read()
        self._view.show(
            [(document.path.name, records[document.job_id]) for document in self._documents],
            {worker.holder: worker.label for worker in self._seen_workers()},
        )
        self._kill_once(records)
        return all(record.is_final for record in records.values())

    def _read(self) -> dict[str, JobRecord]:
        return self.app.engine.run(store.read([document.job_id for document in self._documents]))

    def _seen_workers(self) -> list[WorkerProcess]:
        """Learn the holder ids of our processes from the database."""
        by_pid = {worker.pid: worker for worker in self._workers}
        for record in self.app.engine.run(store.list_workers()):
            if record.pid in by_pid and not by_pid[record.pid].holder:
                by_pid[record.pid].holder = record.id
        return [worker for worker in self._workers if worker.holder]

    def _kill_once(self, records: dict[str, JobRecord]) -> None:
        """Kill the worker of the longest document once it is well under way and the other can judge it."""
        victim = max(self._documents, key=lambda document: document.pages)
        record = records[victim.job_id]
        if victim.killed or (record.progress or 0) < KILL_AT_PERCENT:
            return
        for worker in self._seen_workers():
            if worker.holder == record.holder:
                victim.killed = True
                worker.kill(signal.SIGKILL)
                self._view.say(
                    f"Killed {worker.name} (pid {worker.pid}) with SIGKILL while it reads {victim.path.name}. "
                    f"Its lease runs out in at most {self._lease_s:.3g} s; then the other takes over."
                )

    def _summary(self) -> int:
        records = self._read()
        rows = [(document.path.name, records[document.job_id]) for document in self._documents]
        self._view.results(rows)
        survivor = next((document for document in self._documents if document.killed), None)
        if survivor is not None:
            names = {worker.holder: worker.name for worker in self._seen_workers()}
            self._view.timeline(survivor.path.name, self.app.client.timeline(survivor.job_id), names)
        unfinished = [name for name, record in rows if not record.is_final]
        if unfinished:
            self._view.say(f"Not finished within {LIMIT_S:g} s: {', '.join(unfinished)}.")
            return 1
        attempts = sum(record.attempt for _, record in rows)
        states = ", ".join(
            f"{sum(record.state == state for _, record in rows)} {state}"
            for state in sorted({record.state for _, record in rows})
        )
        self._view.conclude(f"{len(rows)} jobs: {states}; {attempts} attempts; every job ended exactly once.")
        return 0


def _planned(paths: Sequence[Path]) -> list[Document]:
    """Pace the longest document so that somebody can watch it die, and the others so that they can be seen."""
    pages = {path: _pages(path) for path in paths}
    victim = max(pages, key=lambda path: pages[path])
    return [
        Document(path, count, max(0.3, VICTIM_S / max(count, 1)) if path == victim else PACE_S)
        for path, count in pages.items()
    ]


def _pages(path: Path) -> int:
    from fencerow.demo.fields import DocumentError, page_count

    try:
        return page_count(path)
    except DocumentError:
        return 0  # the job will fail with the reason, which is worth seeing


def _readable(path: Path) -> Path:
    if not path.is_file() or not os.access(path, os.R_OK):
        raise InvalidInput(f"{path} is no readable file", "the demo reads PDF files", "check the path")
    return path.resolve()


def _fingerprint(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
