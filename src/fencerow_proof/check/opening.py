"""Where a handler is run apart from its own database: the scratch database that fits its application."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from fencerow.testing.pg_binaries import BinariesMissing
from fencerow.testing.postgres import PostgresServer
from fencerow_proof.check.options import Options
from fencerow_proof.check.scratch import Scratch
from fencerow_proof.check.scratch_postgres import PRIVATE_SETTINGS, PostgresScratch
from fencerow_proof.check.scratch_sqlite import SqliteScratch
from fencerow_proof.check.wire import Loaded
from fencerow_proof.errors import CheckNeedsMore


def preset_of(options: Options) -> dict[str, str]:
    """Where an application that names no database of its own finds one; nothing is ever opened there."""
    if options.url is not None or options.engine == "postgres":
        return {"FENCEROW_URL": "postgresql:///fencerow_check"}
    return {"FENCEROW_URL": "sqlite:///fencerow_check.db"} if options.engine == "sqlite" else {}


def scratch_of(
    options: Options, loaded: Loaded, folder: Path, stack: ExitStack, say: Callable[[str], None]
) -> Scratch:
    """A scratch database; it goes with the stack.

    Raises:
        CheckNeedsMore: there is none of the kind that the application names.
    """
    asked = "postgres" if options.url is not None else options.engine
    if asked is not None and asked != loaded.dialect:
        raise CheckNeedsMore(
            f"the application names a {loaded.dialect} database, and {asked} was asked for",
            "its statements are written for that database",
            "leave out --engine and --url, or let the application read FENCEROW_URL",
        )
    if loaded.dialect == "sqlite":
        return _closed_by(stack, SqliteScratch(folder, loaded))
    empty = options.url
    if empty is None:
        say("starting a private PostgreSQL server")
        try:
            server = stack.enter_context(PostgresServer(fast=True, settings=PRIVATE_SETTINGS))
        except BinariesMissing as error:
            raise CheckNeedsMore(
                "PostgreSQL's programs were not found on this machine",
                str(error).splitlines()[0],
                "install them, set FENCEROW_PG_BIN, or name an empty database with --url",
            ) from None
        empty = server.create_database("empty")
    return _closed_by(stack, PostgresScratch(empty, folder, loaded))


def _closed_by(stack: ExitStack, scratch: Scratch) -> Scratch:
    stack.callback(scratch.close)
    return scratch
