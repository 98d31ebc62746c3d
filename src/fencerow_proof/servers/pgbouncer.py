"""PgBouncer in transaction mode before a private server: what many an operator has, for tests.

    with PostgresServer(fast=True) as server, PgBouncer(server) as pooler:
        engine = PostgresEngine(pooler.conninfo("app", "app"), queries, listen_conninfo=server.conninfo("app", "app"))

A client has a server connection for one transaction at a time; between two it may be anybody's. LISTEN hears
nothing through it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self
from urllib.parse import quote

import psycopg

from fencerow.testing.pg_binaries import BinariesMissing
from fencerow.testing.pg_home import Account, Home
from fencerow.testing.pg_process import spawn
from fencerow.testing.postgres import PostgresServer, ServerFailed

__all__ = ["PgBouncer", "find_pgbouncer"]

PROGRAM = "pgbouncer"
FOLDERS = "/usr/sbin:/usr/local/sbin:/usr/local/bin:/opt/homebrew/bin"
PORT = 6432  # names the socket only; nothing listens on TCP
ADMIN = "postgres"
LOG = "pooler.log"
CONFIG = """\
[databases]
* = host={server} port={server_port} auth_user={admin}

[pgbouncer]
pool_mode = {pool_mode}
listen_addr =
listen_port = {port}
unix_socket_dir = {directory}
unix_socket_mode = 0700
auth_type = trust
auth_file = {directory}/users.txt
auth_query = SELECT usename, passwd FROM pg_catalog.pg_shadow WHERE usename = $1
admin_users = {admin}
max_client_conn = 1000
default_pool_size = {pool_size}
server_round_robin = 1
server_login_retry = 1
query_wait_timeout = 5
log_connections = 0
log_disconnections = 0
"""


def find_pgbouncer(environ: Mapping[str, str] = os.environ, folders: str = FOLDERS) -> Path:
    """Return the program's path.

    Raises:
        BinariesMissing: it is not installed.
    """
    path = f"{environ.get('PATH', os.defpath)}:{folders}"
    found = shutil.which(PROGRAM, path=path)
    if found is None:
        raise BinariesMissing(
            f"{PROGRAM} was not found\n  looked in: {path}\n  install it (Debian, Ubuntu: apt-get install pgbouncer)"
        )
    return Path(found)


def is_pooled(url: str) -> bool:
    """Whether a URL leads through a pooler of ours."""
    return url.endswith(f"&port={PORT}")


class PgBouncer:
    """A pooler that is a direct child of this process, with a Unix socket that only its owner can reach."""

    def __init__(
        self,
        server: PostgresServer,
        *,
        pool_size: int = 20,
        pool_mode: str = "transaction",
        deadline_s: float = 20,
    ) -> None:
        self._program = find_pgbouncer()
        self._server = server
        self._pool_size = pool_size
        self._pool_mode = pool_mode
        self._deadline_s = deadline_s
        self._account = Account.unprivileged()
        self._home: Home | None = None
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.close()

    def start(self) -> Self:
        """Start it and wait until it answers.

        Raises:
            ServerFailed: it ended or did not answer in time.
        """
        self._home = Home(self._account, fast=True)
        config = self._write("pooler.ini", CONFIG.format(**self._places()))
        self._write("users.txt", f'"{ADMIN}" "{self._server.password}"\n')
        log = self._home.path / LOG
        self._process = spawn([str(self._program), str(config)], self._account, self._home.path, log)
        self._wait_until_ready(log)
        return self

    def close(self) -> None:
        """End it, and every connection through it."""
        if self._process is not None:
            self._process.terminate()
            try:
                self._process.wait(self._deadline_s)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            self._process = None
        if self._home is not None:
            self._home.remove()
            self._home = None

    def conninfo(self, database: str, role: str) -> str:
        """A URL that leads through the pooler."""
        return f"postgresql://{quote(role)}@/{quote(database)}{self._way}"

    def direct(self, url: str) -> str:
        """The URL of the same database without the pooler, as for LISTEN; a URL that leads elsewhere stays."""
        return url.replace(self._way, self._servers_way)

    def pooled(self, url: str) -> str:
        """The URL of the same database through the pooler."""
        return url.replace(self._servers_way, self._way)

    def clients(self, database: str) -> list[dict[str, Any]]:
        """Who is connected to a database through the pooler, as `SHOW CLIENTS` tells it."""
        with self._admin() as connection:
            cursor = connection.execute("SHOW CLIENTS")
            names = [column.name for column in cursor.description or ()]
            rows = [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
        return [row for row in rows if row["database"] == database]

    @property
    def _way(self) -> str:
        assert self._home is not None, "start it first"
        return f"?host={self._home.path}&port={PORT}"

    @property
    def _servers_way(self) -> str:
        return f"?host={self._server.directory}&port={self._server.port}"

    def _admin(self) -> psycopg.Connection[Any]:
        return psycopg.connect(self.conninfo(PROGRAM, ADMIN), autocommit=True, connect_timeout=10)

    def _places(self) -> dict[str, object]:
        assert self._home is not None
        return {
            "server": self._server.directory,
            "server_port": self._server.port,
            "directory": self._home.path,
            "port": PORT,
            "admin": ADMIN,
            "pool_size": self._pool_size,
            "pool_mode": self._pool_mode,
        }

    def _write(self, name: str, text: str) -> Path:
        assert self._home is not None
        path = self._home.path / name
        path.touch(0o600)
        path.write_text(text)
        os.chown(path, self._account.uid, self._account.gid)
        return path

    def _wait_until_ready(self, log: Path) -> None:
        assert self._process is not None
        deadline = time.monotonic() + self._deadline_s
        while True:
            try:
                self._admin().close()
            except psycopg.OperationalError:
                ended = self._process.poll() is not None
                if ended or time.monotonic() > deadline:
                    story = log.read_text(errors="replace")[-2000:]
                    self.close()
                    raise ServerFailed(f"the pooler did not start\n{story}") from None
                time.sleep(0.02)
            else:
                return
