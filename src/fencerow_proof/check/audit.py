"""What leaves the process without being declared: files written, sockets connected, programs started."""

from __future__ import annotations

import os
import socket
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fencerow_proof.check.kinds import Kind
from fencerow_proof.check.seam import Seam

WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
CHANGES = {
    "os.remove": 0,
    "os.rename": 1,
    "os.mkdir": 0,
    "os.rmdir": 0,
    "os.truncate": 0,
    "os.link": 1,
    "os.symlink": 1,
}
# Not all of /dev: files in /dev/shm outlive the process.
DEVICES = (
    *("/dev/null", "/dev/zero", "/dev/full", "/dev/tty", "/dev/pts/", "/dev/fd/", "/dev/std"),
    *("/dev/random", "/dev/urandom"),
)
PROGRAMS = ("subprocess.Popen", "os.system", "os.posix_spawn", "os.exec", "os.spawn", "pty.spawn")


class UndeclaredSocket(ConnectionRefusedError):
    """What a handler meets that calls out undeclared: a check must not do real things outside, a hundred times."""


def watch(seam: Seam, allowed: Sequence[str], folder: Path) -> None:
    """Tell the seam of what nobody declared. For the rest of this process: an audit hook cannot be taken back.

    `allowed` are `socket:HOST[:PORT]`, `file:PATH` (and what is below) and `process:NAME`. Temporary files are this
    run's own, and the next run finds none of them: it may be on another machine, or after a restart of this one.
    """
    temporary = folder / f"tmp-{os.getpid()}"
    temporary.mkdir()
    tempfile.tempdir = os.environ["TMPDIR"] = str(temporary)
    files = (f"{folder}/", *DEVICES, "/proc/", *_of("file:", allowed))
    sockets, programs = _of("socket:", allowed), _of("process:", allowed)

    def hook(event: str, args: tuple[Any, ...]) -> None:
        if not seam.is_open:
            return
        if event == "open" and isinstance(args[0], str | bytes | os.PathLike) and _writes(args[1], args[2]):
            _file(seam, args[0], files)
        elif event in CHANGES:
            _file(seam, args[CHANGES[event]], files)
        elif event == "socket.connect":
            _socket(seam, args[1], sockets)
        elif event in PROGRAMS:
            name = Path(os.fsdecode(args[0]) if isinstance(args[0], bytes) else str(args[0])).name
            if name not in programs:
                seam.see(Kind.PROCESS, name)

    sys.addaudithook(hook)


def _writes(mode: object, flags: object) -> bool:
    if isinstance(mode, str) and set(mode) & set("wax+"):
        return True
    return mode is None and isinstance(flags, int) and bool(flags & WRITING)


def _file(seam: Seam, path: Any, allowed: Sequence[str]) -> None:
    if isinstance(path, int):
        return
    whole = str(Path(os.fsdecode(path)).absolute())
    if not whole.startswith(tuple(allowed)):
        seam.see(Kind.FILE, whole)


def _socket(seam: Seam, address: Any, allowed: Sequence[str]) -> None:
    shown = f"{address[0]}:{address[1]}" if isinstance(address, tuple) else os.fsdecode(address)
    if shown in allowed or shown.rpartition(":")[0] in allowed or _is_database(shown):
        return
    seam.see(Kind.SOCKET, shown)
    raise UndeclaredSocket(
        f"the handler connects to {shown}, which is not declared: declare the call (outside=), or allow the socket"
    )


def _is_database(shown: str) -> bool:
    """asyncpg connects by a socket of Python's, and it was led to the scratch database."""
    return ".s.PGSQL." in shown or shown in _own


_own: set[str] = set()


def own(host: str | None, port: int | None) -> None:
    """This address is the scratch database's."""
    if host and not host.startswith("/"):
        _own.add(f"{host}:{port or 5432}")
        for found in socket.getaddrinfo(host, port or 5432):
            _own.add(":".join(map(str, found[4][:2])))


def _of(prefix: str, allowed: Sequence[str]) -> tuple[str, ...]:
    return tuple(each.removeprefix(prefix) for each in allowed if each.startswith(prefix))
