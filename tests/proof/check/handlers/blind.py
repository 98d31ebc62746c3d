"""The handlers of `on_sqlite3` in processes whose drivers are not watched: what a broken check would be."""

from __future__ import annotations

from fencerow_proof.check import actor
from fencerow_proof.check.seam import Seam
from tests.proof.check.handlers.on_sqlite3 import app, tables

__all__ = ["app", "tables"]


def watch_nothing(_seam: Seam) -> None:
    pass


setattr(actor, "watch_all", watch_nothing)  # noqa: B010 (a name that it imported)
