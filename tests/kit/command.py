"""`fencerow` as a process of its own, without the third of a second that an interpreter takes to import it.

It is a fork of one that has imported the command already (tests/kit/forking.py): with a process id, an environment, a
folder and streams of its own. What happens before the command's first line, and after its last, is not the same as in
a process that a person starts. Where that is the subject, start `python -m fencerow` itself.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import IO, Self

from tests.kit.forking import context

LEFT_TO_DEFAULT = (signal.SIGHUP, signal.SIGTERM)


class Command:
    """One that runs; used as `subprocess.Popen` with text and pipes."""

    def __init__(self, words: Sequence[str], environment: Mapping[str, str], log: Path | None = None) -> None:
        """With `log` it writes there, behind what others wrote, and nothing to the pipes."""
        self._words = words
        if log is not None:
            log.touch()  # so that it can be read before the other has begun
        (out, their_out), (err, their_err) = context.Pipe(duplex=False), context.Pipe(duplex=False)
        self.stdout, self.stderr = _text(out), _text(err)
        self._process = context.Process(
            target=_be, args=(words, dict(environment), Path.cwd(), their_out, their_err, log), daemon=True
        )
        self._process.start()
        for theirs in (their_out, their_err):
            theirs.close()
        self._said = {"out": "", "err": ""}
        self._readers: list[threading.Thread] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.stdout.close()
        self.stderr.close()
        self.wait()

    @property
    def pid(self) -> int:
        assert self._process.pid is not None
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        """As `subprocess` has it: negative for one that a signal ended."""
        return self._process.exitcode

    def poll(self) -> int | None:
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        self._process.join(timeout)
        if (code := self.returncode) is None:
            raise self._late(timeout)
        return code

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def communicate(self, timeout: float | None = None) -> tuple[str, str]:
        """What it has written from now on, once it has ended."""
        if not self._readers:
            self._readers = [self._reader("out", self.stdout), self._reader("err", self.stderr)]
        for reader in self._readers:
            reader.join(timeout)
            if reader.is_alive():
                raise self._late(timeout)
        self.wait(timeout)
        return self._said["out"], self._said["err"]

    def _reader(self, name: str, stream: IO[str]) -> threading.Thread:
        def read() -> None:
            with stream:
                self._said[name] = stream.read()

        reader = threading.Thread(target=read, daemon=True)
        reader.start()
        return reader

    def _late(self, timeout: float | None) -> subprocess.TimeoutExpired:
        return subprocess.TimeoutExpired(list(self._words), timeout or 0.0)


def _text(end: Connection) -> IO[str]:
    stream = os.fdopen(os.dup(end.fileno()), encoding="utf-8")
    end.close()
    return stream


def _be(
    words: Sequence[str],
    environment: Mapping[str, str],
    folder: Path,
    out: Connection,
    err: Connection,
    log: Path | None,
) -> None:
    """In the fork."""
    from fencerow.cli.main import main

    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    for number, end in ((1, out), (2, err)):
        os.dup2(end.fileno(), number)
        end.close()
    if log is not None:
        with log.open("ab") as file:
            os.dup2(file.fileno(), 1)
            os.dup2(file.fileno(), 2)
    sys.stdout = os.fdopen(1, "w", encoding="utf-8", closefd=False)
    sys.stderr = os.fdopen(2, "w", encoding="utf-8", errors="backslashreplace", buffering=1, closefd=False)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in LEFT_TO_DEFAULT:
        signal.signal(number, signal.SIG_DFL)
    sys.argv = ["fencerow", *words]
    main()
