"""The environment of the shop's processes, on each engine."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from psycopg.conninfo import conninfo_to_dict

from fencerow.testing.postgres import PostgresServer
from tests.house.tree import ROOT
from tests.kit.loops import module_path

SHOP = ROOT / "examples" / "django"


@pytest.fixture(params=["sqlite", "postgres"])
def environment(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[dict[str, str]]:
    """What a process of the shop finds in its environment: each engine in turn."""
    paths = module_path(ROOT / "src", SHOP)
    found = {**os.environ, "PYTHONPATH": paths, "SHOP_FOLDER": str(tmp_path)}
    found |= {"DJANGO_SETTINGS_MODULE": "project.settings", "PYTHONDONTWRITEBYTECODE": "1"}
    if request.param == "sqlite":
        yield found
        return
    server: PostgresServer = request.getfixturevalue("server")
    with server.connect("postgres") as connection:
        connection.execute("CREATE DATABASE django_shop")
    told = conninfo_to_dict(server.conninfo("django_shop", "postgres"))
    yield {**found, "PGDATABASE": "django_shop", "PGHOST": str(told["host"]), "PGUSER": "postgres"}
    with server.connect("postgres") as connection:
        connection.execute("DROP DATABASE django_shop WITH (FORCE)")


def manage(environment: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(SHOP / "manage.py"), *arguments]
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=300, check=False, cwd=SHOP
    )
