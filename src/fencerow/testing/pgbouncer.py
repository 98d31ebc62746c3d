"""Moved: a private PgBouncer is in `fencerow_proof.servers.pgbouncer`."""

from typing import TYPE_CHECKING

from fencerow.proof import moved

if not TYPE_CHECKING:
    __getattr__ = moved(__name__, "fencerow_proof.servers.pgbouncer")
