"""Fencerow's tables in a real Alembic environment: up to a number, again, and invisible to autogenerate."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from sqlalchemy import Column, Integer, MetaData, Table, create_engine, inspect

from fencerow.alembic import excluding, include_name
from fencerow.core.schema.migrate import ledger, ledger_name
from fencerow.core.store import store
from fencerow.db.sqlite import SqliteEngine
from fencerow.errors import ConfigError
from tests.conftest import postgres_engine
from tests.db.lenders import alchemy_url

ENV = """
from alembic import context
from sqlalchemy import MetaData, NullPool, create_engine
from fencerow.alembic import include_name

url = context.config.get_main_option("sqlalchemy.url")
if context.is_offline_mode():
    context.configure(url=url, target_metadata=MetaData(), version_table_schema={schema!r})
    context.run_migrations()
else:
    with create_engine(url, poolclass=NullPool).connect() as connection:
        context.configure(connection=connection, target_metadata=MetaData(), include_name=include_name,
                          include_schemas=True, version_table_schema={schema!r})
        with context.begin_transaction():
            context.run_migrations()
"""
REVISION = """
from alembic import op
import sqlalchemy as sa
from fencerow.alembic import upgrade_fencerow

revision, down_revision = {revision!r}, {before!r}

def upgrade():
    {body}

def downgrade():
    pass
"""
MINE = "op.create_table('{name}', sa.Column('id', sa.Integer, primary_key=True), schema={schema!r})"


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest) -> tuple[str, Any, str | None]:
    """Where the database is, our engine there, and the one schema that the role may use."""
    if request.param == "sqlite":
        path = request.getfixturevalue("sqlite_path")
        return alchemy_url("sqlite", str(path)), SqliteEngine(path, store.sqlite_queries()), None
    url = request.getfixturevalue("empty_postgres_url")
    return alchemy_url("postgresql+psycopg", url), postgres_engine(url), "fencerow"


def environment(tmp_path: Path, url: str, schema: str | None, *bodies: str) -> Config:
    """An Alembic environment with a revision for each body."""
    versions = tmp_path / "versions"
    versions.mkdir(parents=True)
    (tmp_path / "env.py").write_text(ENV.format(schema=schema))
    (tmp_path / "script.py.mako").write_text("")
    before = None
    for number, body in enumerate(bodies, 1):
        text = REVISION.format(revision=f"r{number}", before=before, body=body)
        (versions / f"r{number}.py").write_text(text)
        before = f"r{number}"
    config = Config()
    config.set_main_option("script_location", str(tmp_path))
    config.set_main_option("sqlalchemy.url", url.replace("%", "%%"))
    return config


def versions(engine: Any) -> list[int]:
    return [each.version for each in engine.run(ledger(ledger_name(engine)))]


def test_a_revision_brings_the_tables_to_its_number(
    place: tuple[str, Any, str | None], tmp_path: Path
) -> None:
    url, engine, schema = place
    config = environment(
        tmp_path,
        url,
        schema,
        MINE.format(name="mine", schema=schema),
        "upgrade_fencerow(op, to=2)",
        MINE.format(name="mine_too", schema=schema) + "\n    upgrade_fencerow(op, to=8)",
        "upgrade_fencerow(op, to=3)",
    )

    command.upgrade(config, "r2")
    second = versions(engine)
    command.upgrade(config, "head")
    last = versions(engine)
    command.stamp(config, "r1")
    (tmp_path / "versions" / "r3.py").write_text(
        REVISION.format(revision="r3", before="r2", body="upgrade_fencerow(op, to=8)")
    )
    command.upgrade(config, "head")

    assert (second, last, versions(engine)) == ([1, 2], list(range(1, 9)), list(range(1, 9)))
    made = create_engine(url)
    assert {"mine", "mine_too"} <= set(inspect(made).get_table_names(schema=schema))
    made.dispose()
    engine.close()


@pytest.mark.parametrize("to", [0, 10_000])
def test_a_number_that_nobody_knows_changes_nothing(
    place: tuple[str, Any, str | None], tmp_path: Path, to: int
) -> None:
    url, engine, schema = place
    config = environment(tmp_path, url, schema, f"upgrade_fencerow(op, to={to})")

    with pytest.raises(ConfigError, match="there is no migration"):
        command.upgrade(config, "head")

    assert versions(engine) == []
    engine.close()


def test_alembic_cannot_print_it(place: tuple[str, Any, str | None], tmp_path: Path) -> None:
    url, engine, schema = place
    config = environment(tmp_path, url, schema, "upgrade_fencerow(op, to=1)")

    with pytest.raises(ConfigError, match="fencerow sql"):
        command.upgrade(config, "head", sql=True)

    engine.close()


def test_autogenerate_does_not_see_our_tables(place: tuple[str, Any, str | None]) -> None:
    url, engine, schema = place
    store.migrate(engine)
    if schema is None:  # on PostgreSQL the role may use no other schema
        with engine.session() as session:
            session.connection.execute("CREATE TABLE mine (id integer)")
            session.connection.execute("CREATE TABLE left_out (id integer)")
    engine.close()
    made = create_engine(url)
    metadata = MetaData()
    Table("wanted", metadata, Column("id", Integer, primary_key=True), schema="elsewhere" if schema else None)

    def found(include: Any) -> set[str]:
        with made.connect() as connection:
            options = {"include_name": include, "include_schemas": True}
            compared = compare_metadata(MigrationContext.configure(connection, opts=options), metadata)
        return {f"{step[0]} {step[1].name}" for step in compared if isinstance(step, tuple)}

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it cannot read all of our indexes
        everything = found(None)
    ours, also = found(include_name), found(excluding(also=lambda name, *_: name != "left_out"))
    made.dispose()

    removed = "remove_table jobs" if schema else "remove_table fencerow_jobs"
    assert removed in everything
    mine = set() if schema else {"remove_table mine", "remove_table left_out"}
    assert ours == {"add_table wanted"} | mine
    assert also == ours - {"remove_table left_out"}
