"""The statements on a ledger: the two dialects say the same, and each is used."""

from __future__ import annotations

import re
from importlib.resources import files

import fencerow
from fencerow.migrations.ledger import Ledger

QUERIES = {dialect: Ledger.of("schema_ledger").queries(dialect) for dialect in ("postgres", "sqlite")}
# Indexes are made beside others' work on PostgreSQL alone.
POSTGRES_ONLY = {"find_index", "relation_exists"}


def test_both_dialects_have_the_same_queries_with_the_same_parameters() -> None:
    assert set(QUERIES["postgres"]) - POSTGRES_ONLY == set(QUERIES["sqlite"])
    for name in QUERIES["sqlite"]:
        assert set(QUERIES["postgres"][name].parameters) == set(QUERIES["sqlite"][name].parameters), name


def test_every_query_is_used_and_every_used_one_is_there() -> None:
    folder = files(fencerow).joinpath("migrations")
    sources = [file.read_text("utf-8") for file in folder.iterdir() if file.name.endswith(".py")]
    used = {name for source in sources for name in re.findall(r'execute\(\s*"([a-z_]+)"', source)}
    assert used == set(QUERIES["postgres"])
