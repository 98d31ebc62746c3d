"""A private PostgreSQL server for tests and development: real, fast to make, and gone with its starter."""

import atexit
import os
import secrets
import signal
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Literal, Self
from urllib.parse import quote

import psycopg
from psycopg import sql
from psycopg.rows import TupleRow

from fencerow.core.model.seconds import Seconds, in_seconds
from fencerow.testing.pg_binaries import BinariesMissing, copy_binaries, find_binaries
from fencerow.testing.pg_home import Account, Home, is_usable
from fencerow.testing.pg_process import spawn
from fencerow.testing.ports import free_port

__all__ = ["BinariesMissing", "PostgresServer", "ServerFailed", "StopMode", "find_binaries"]

SUPERUSER = "postgres"
LOG = "server.log"
SETTINGS: Mapping[str, str] = {
    "fsync": "on",  # a crash test that skips it proves nothing
    "shared_buffers": "128MB",
    "max_connections": "200",
    "log_lock_waits": "on",
    "deadlock_timeout": "100ms",
    "log_line_prefix": "%m [%p] %q%a ",
    "timezone": "UTC",
}


StopMode = Literal["fast", "immediate"]
STOP_SIGNALS: Mapping[StopMode, signal.Signals] = {
    "fast": signal.SIGINT,  # ends the sessions and writes everything down
    "immediate": signal.SIGQUIT,  # a crash: the next start recovers from the write-ahead log
}


class ServerFailed(RuntimeError):
    """The server did not start or did not stop. The message ends with the tail of its log."""


class PostgresServer:
    """One server in a private directory, with a Unix socket that only its owner can reach.

    It is a direct child of this process and dies with it, even by SIGKILL (Linux). It may be started from any
    thread. As root it runs as `nobody`. With `tcp=True` it also listens on 127.0.0.1, where a random password
    is asked: every user of the machine can reach that port. `fast=True` keeps the files in memory; `parent` is
    the folder in which the private directory is made, such as a small disk that is to be filled.

    One per pytest process is enough; give each test its own database:

        @pytest.fixture(scope="session")
        def server() -> Iterator[PostgresServer]:
            with PostgresServer(fast=True) as server:
                yield server
    """

    def __init__(
        self,
        *,
        binaries: Path | None = None,
        fast: bool = False,
        tcp: bool = False,
        parent: Path | None = None,
        settings: Mapping[str, str] | None = None,
        deadline_s: Seconds = 60,
    ) -> None:
        if parent is not None and not is_usable(parent):
            raise ValueError(f"{parent} cannot hold a server: its path is too long, or closed to its account")
        self.binaries = binaries or find_binaries()
        self.port = free_port() if tcp else 5432
        self.tcp = tcp
        self.password = secrets.token_hex(16)
        self._settings = {**SETTINGS, **(settings or {})}
        self._deadline_s = in_seconds(deadline_s)
        self._account = Account.unprivileged()
        self._fast = fast
        self._parent = parent
        self._home: Home | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._owner = os.getpid()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def directory(self) -> Path:
        """Where the socket, the data and the log are."""
        if self._home is None:
            raise ServerFailed("this server was never started, or is closed; call start() first")
        return self._home.path

    @property
    def pid(self) -> int | None:
        """The server's process id while it runs."""
        return self._process.pid if self._process and self._process.poll() is None else None

    def start(self) -> Self:
        """Start the server and wait until it answers; after a stop, again on the same data and port.

        Raises:
            RuntimeError: it ended or did not answer in time (`ServerFailed`, with the tail of its log).
        """
        if self.pid is not None:
            return self
        if self._home is None:
            self._create()
        self._process = self._spawn(["postgres", "-D", str(self.data), *self._options()])
        self._wait_until_ready(time.monotonic() + self._deadline_s)
        return self

    def stop(self, mode: StopMode = "fast") -> None:
        """Stop the server and keep its data. Stopping a stopped one does nothing."""
        if self._process is None:
            return
        if self._process.poll() is None:
            self._process.send_signal(STOP_SIGNALS[mode])
        try:
            self._process.wait(self._deadline_s)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            raise ServerFailed(
                f"no end within {self._deadline_s} s of a stop ({mode})\n{self.log_tail()}"
            ) from None
        finally:
            self._process = None

    def restart(self, mode: StopMode = "fast") -> None:
        """Stop the server and start it again on the same data and port; see `stop` and `start`."""
        self.stop(mode)
        self.start()

    def close(self) -> None:
        """Stop at once and remove everything."""
        atexit.unregister(self._at_exit)
        try:
            self.stop("immediate")
        finally:
            if self._home is not None:
                self._home.remove()
                self._home = None

    def conninfo(self, database: str = "postgres", role: str = SUPERUSER, *, tcp: bool = False) -> str:
        """A URL for psycopg, asyncpg and libpq; through the socket unless `tcp`."""
        if not tcp:
            return f"postgresql://{quote(role)}@/{quote(database)}?host={self.directory}&port={self.port}"
        if not self.tcp:
            raise ValueError("this server has no TCP port; make it with PostgresServer(tcp=True)")
        return f"postgresql://{quote(role)}:{self.password}@127.0.0.1:{self.port}/{quote(database)}"

    def connect(self, database: str = "postgres") -> psycopg.Connection[TupleRow]:
        """A superuser's connection in autocommit. Use it to prepare a test, never for what you test."""
        return psycopg.connect(self.conninfo(database), autocommit=True, connect_timeout=10)

    def create_database(self, name: str, *, template: str | None = None, owner: str = SUPERUSER) -> str:
        """Create a database and return its superuser URL. A template must have no open connections."""
        made = sql.SQL("CREATE DATABASE {} OWNER {}").format(sql.Identifier(name), sql.Identifier(owner))
        if template:
            made += sql.SQL(" TEMPLATE {}").format(sql.Identifier(template))
            if self._fast:
                # In memory a checkpoint costs less than a log of every page: half the time, and a third to drop it.
                made += sql.SQL(" STRATEGY FILE_COPY")
        with self.connect() as connection:
            connection.execute(made)
        return self.conninfo(name)

    def drop_database(self, name: str) -> None:
        """Drop a database, ending whoever is connected to it."""
        with self.connect() as connection:
            connection.execute(
                sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name))
            )

    def create_role_and_schema(
        self, *, role: str = "app", database: str = "app", schema: str = "fencerow"
    ) -> str:
        """Give `role` what a careful operator would: one schema of its own, and nothing else. Return its URL.

        The role may log in; it is no superuser and can create neither schemas in the database nor, since
        PostgreSQL 15, objects in `public`. A role or database that exists is kept: one role can have several.
        """
        with self.connect() as connection:
            if not connection.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", [role]).fetchone():
                login = sql.SQL("CREATE ROLE {} LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE PASSWORD {}")
                connection.execute(login.format(sql.Identifier(role), sql.Literal(self.password)))
            known = connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [database]).fetchone()
        if not known:
            self.create_database(database)
        with self.connect(database) as connection:
            owned = sql.SQL("CREATE SCHEMA {} AUTHORIZATION {}")
            connection.execute(owned.format(sql.Identifier(schema), sql.Identifier(role)))
        return self.conninfo(database, role)

    def kill_backends(self, database: str | None = None, role: str | None = None) -> int:
        """End the client connections of a database, a role or all, and return how many; none is told why."""
        with self.connect() as connection:
            return connection.execute(
                """
                SELECT pg_terminate_backend(pid, 5000)
                FROM pg_stat_activity
                WHERE backend_type = 'client backend'
                  AND pid <> pg_backend_pid()
                  AND datname = coalesce(%s::text, datname)
                  AND usename = coalesce(%s::text, usename)
                """,
                [database, role],
            ).rowcount

    def log_tail(self, lines: int = 20) -> str:
        """The end of the server's log."""
        path = self.directory / LOG
        return "\n".join(path.read_text(errors="replace").splitlines()[-lines:]) if path.exists() else ""

    @property
    def data(self) -> Path:
        """The data directory, below `directory`."""
        return self.directory / "data"

    def _create(self) -> None:
        self._home = Home(self._account, self._fast, self._parent)
        atexit.register(self._at_exit)
        self._make_binaries_reachable()
        self._fill()

    def _fill(self) -> None:
        """Make the data directory."""
        secret = self.directory / "password"
        secret.write_text(self.password)
        os.chown(secret, self._account.uid, self._account.gid)
        self._make(
            *("initdb", "-D", str(self.data), "-U", SUPERUSER, "--pwfile", str(secret)),
            *("--auth-local=trust", "--auth-host=scram-sha-256"),
            *("--encoding=UTF8", "--locale=C.UTF-8", "--no-sync", "--no-instructions"),
        )
        secret.unlink()

    def _make(self, *command: str) -> None:
        if self._spawn(list(command)).wait(self._deadline_s) != 0:
            raise self._failure(f"{command[0]} failed")

    def _make_binaries_reachable(self) -> None:
        """Copy the programs into our directory if `nobody` cannot reach them, as below a closed home."""
        if not self._account.is_other:
            return
        if self._spawn(["postgres", "--version"]).wait(self._deadline_s) == 0:
            return
        self.binaries = copy_binaries(self.binaries, self.directory / "install")

    def _at_exit(self) -> None:
        # A forked child inherits this object and its exit handlers, but not the server.
        if os.getpid() == self._owner:
            self.close()

    def _options(self) -> list[str]:
        private = {
            "port": str(self.port),
            "listen_addresses": "127.0.0.1" if self.tcp else "",
            "unix_socket_directories": str(self.directory),
            "unix_socket_permissions": "0700",
        }
        return [
            part
            for name, value in {**self._settings, **private}.items()
            for part in ("-c", f"{name}={value}")
        ]

    def _spawn(self, command: list[str]) -> subprocess.Popen[bytes]:
        program = [str(self.binaries / command[0]), *command[1:]]
        return spawn(program, self._account, self.directory, self.directory / LOG)

    def _wait_until_ready(self, deadline: float) -> None:
        assert self._process is not None
        while True:
            if self._process.poll() is not None:
                raise self._failure(f"the server ended with code {self._process.returncode}")
            try:
                self.connect().close()
            except psycopg.OperationalError:
                if time.monotonic() > deadline:
                    raise self._failure(f"no answer within {self._deadline_s} s") from None
                time.sleep(0.02)
            else:
                return

    def _failure(self, what: str) -> ServerFailed:
        """Describe a failed start, and leave nothing of it running."""
        story = f"  programs: {self.binaries}\n  the end of its log:\n{self.log_tail()}"
        self.close()
        return ServerFailed(f"{what}\n{story}")
