"""The metrics of several worker processes on the one port of their supervisor.

Each process answers on a socket file in a folder that its supervisor made and nobody else can enter. The supervisor
asks all of them at each scrape, and gives what each counts a label `process`. It counts nothing, and has no database.
"""

from __future__ import annotations

import contextlib
import socket
import socketserver
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from fencerow.core.errors import ConfigError
from fencerow.metrics.names import OF_DATABASE

WHOLE, OWN = b"whole\n", b"own\n"  # with what is seen of the database, or what the process counts alone
ANSWER_S = 5.0  # longer than a process waits for its look at the database, usually
SUFFIX = ".metrics"
ONCE = frozenset(metric.name for metric in OF_DATABASE)  # the same in every process: told of one of them


class Folder:
    """Where the processes answer, while the block lasts."""

    def __init__(self) -> None:
        self._made = tempfile.TemporaryDirectory(prefix="fencerow-")  # for this user alone

    def __enter__(self) -> Folder:
        return self

    def __exit__(self, *_: object) -> None:
        self._made.cleanup()

    @property
    def path(self) -> Path:
        return Path(self._made.name)

    def page(self) -> bytes:
        """The metrics of all processes that answer, those of the lowest number first."""
        found: dict[str, str] = {}
        for path in sorted(self.path.glob(f"*{SUFFIX}"), key=lambda each: int(each.stem)):
            with contextlib.suppress(OSError):  # it is gone, or about to start
                found[path.stem] = _asked(path, OWN if found else WHOLE)
        return merged(found).encode()


def merged(pages: Mapping[str, str]) -> str:
    """The pages of several processes as one: each family once, its samples with the process that counted them."""
    heads: dict[str, list[str]] = {}
    samples: dict[str, list[str]] = {}
    for process, page in pages.items():
        for name, line in _lines(page):
            if line.startswith("#"):
                head = heads.setdefault(name, [])
                if line not in head:
                    head.append(line)
            else:
                own = line if name in ONCE else _labelled(line, process)
                samples.setdefault(name, []).append(own)
    return "".join(f"{line}\n" for name in heads for line in (*heads[name], *samples.get(name, ())))


def _lines(page: str) -> Iterator[tuple[str, str]]:
    """Each line with the name of its family, which the comments before it say."""
    name = ""
    for line in page.splitlines():
        if line.startswith(("# HELP ", "# TYPE ")):
            name = line.split(" ", 3)[2]
        yield name, line


def _labelled(sample: str, process: str) -> str:
    name, brace, rest = sample.partition("{")
    if brace:
        return f'{name}{{process="{process}",{rest}'
    name, _, value = sample.partition(" ")
    return f'{name}{{process="{process}"}} {value}'


def _asked(path: Path, what: bytes) -> str:
    with socket.socket(socket.AF_UNIX) as asking:
        asking.settimeout(ANSWER_S)
        asking.connect(str(path))
        asking.sendall(what)
        with asking.makefile("rb") as answer:
            return answer.read().decode()


@contextlib.contextmanager
def answering(folder: Path, number: int, page: Callable[[bool], bytes]) -> Iterator[None]:
    """Answer for one process, while the block lasts; `page` is told whether the database shall be looked at.

    Raises:
        ConfigError: the folder's path is too long for a socket file, or it is gone.
    """
    path = folder / f"{number}{SUFFIX}"
    path.unlink(missing_ok=True)  # of the process that had this number before
    try:
        server = _MemberServer(str(path), page)
    except OSError as error:
        raise ConfigError(
            f"no socket file can be made in {folder}",
            error.strerror or str(error),
            "give the supervisor a shorter TMPDIR that this user may write to",
        ) from error
    thread = threading.Thread(
        target=server.serve_forever, args=(0.2,), name="fencerow-metrics-port", daemon=True
    )
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
        path.unlink(missing_ok=True)


class _MemberServer(socketserver.ThreadingUnixStreamServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, path: str, page: Callable[[bool], bytes]) -> None:
        self.page = page
        super().__init__(path, _MemberHandler)

    def handle_error(self, request: object, client_address: object) -> None:
        """Who asked and went away is nobody's concern."""


class _MemberHandler(socketserver.StreamRequestHandler):
    timeout = ANSWER_S

    def handle(self) -> None:
        assert isinstance(self.server, _MemberServer)
        self.wfile.write(self.server.page(self.rfile.readline(16) == WHOLE))
