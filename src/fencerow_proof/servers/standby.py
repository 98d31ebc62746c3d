"""A streaming standby of a private server, to be promoted; and copies of its files, to be gone back to.

with PostgresServer(fast=True, tcp=True) as primary, StandbyServer(primary) as standby:
    url = together(primary, standby, database="app", role="app")
    standby.catch_up()
    primary.stop("immediate")
    standby.promote()
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote

from fencerow.testing.postgres import SUPERUSER, PostgresServer, ServerFailed

__all__ = ["StandbyServer", "restore_files", "save_files", "together"]

READ_WRITE = "read-write"


class StandbyServer(PostgresServer):
    """A copy of a running server that follows it. It is made with the same programs.

    `via_port` is a port of 127.0.0.1 that leads to the primary, such as a fault proxy's: what follows can then be
    cut off. The primary needs `tcp=True`.
    """

    def __init__(
        self,
        primary: PostgresServer,
        *,
        via_port: int | None = None,
        settings: Mapping[str, str] | None = None,
        deadline_s: float = 60,
    ) -> None:
        super().__init__(
            binaries=primary.binaries, fast=True, tcp=True, settings=settings, deadline_s=deadline_s
        )
        self.password = primary.password
        self._primary = primary
        self._via_port = via_port or primary.port

    def catch_up(self) -> None:
        """Wait until everything that the primary has written is here.

        Raises:
            ServerFailed: it did not come in time.
        """
        with self._primary.connect() as primary, self.connect() as here:
            (written,) = primary.execute("SELECT pg_current_wal_flush_lsn()").fetchall()[0]
            deadline = time.monotonic() + self._deadline_s
            query = "SELECT pg_last_wal_replay_lsn() >= %s::pg_lsn"
            while here.execute(query, [str(written)]).fetchall() != [(True,)]:
                if time.monotonic() > deadline:
                    raise ServerFailed(f"the standby did not catch up\n{self.log_tail()}")
                time.sleep(0.005)

    def promote(self) -> None:
        """Make a primary of it, on the next timeline. Returns when it takes writes."""
        with self.connect() as connection:
            (promoted,) = connection.execute("SELECT pg_promote(true, 30)").fetchall()[0]
        if not promoted:
            raise ServerFailed(f"the standby was not promoted\n{self.log_tail()}")

    def _fill(self) -> None:
        follows = (
            f"host=127.0.0.1 port={self._via_port} user={SUPERUSER} password={self.password}"
            " application_name=standby sslmode=disable"
        )
        # -R writes what makes it a standby: the file standby.signal, and where to follow.
        self._make(
            *("pg_basebackup", "-D", str(self.data), "-d", follows, "-R", "-X", "stream"),
            *("--checkpoint=fast", "--no-sync"),
        )


def together(*servers: PostgresServer, database: str, role: str) -> str:
    """One URL that leads to whichever of the servers takes writes."""
    places = ",".join(str(server.directory) for server in servers)
    ports = ",".join(str(server.port) for server in servers)
    return (
        f"postgresql://{quote(role)}@/{quote(database)}?host={places}&port={ports}"
        f"&target_session_attrs={READ_WRITE}"
    )


def save_files(server: PostgresServer, into: Path) -> None:
    """Copy a stopped server's files, as a backup of the whole machine does."""
    assert server.pid is None, "stop it first"
    shutil.copytree(server.data, into)


def restore_files(server: PostgresServer, copy: Path) -> None:
    """Put a stopped server back to what a copy has; all that came later is gone."""
    assert server.pid is None, "stop it first"
    owner = server.data.stat()
    shutil.rmtree(server.data)
    shutil.copytree(copy, server.data)
    for path in [server.data, *server.data.rglob("*")]:
        shutil.chown(path, owner.st_uid, owner.st_gid)
