"""The migrations of the schema that wings bring: in their own folders, in the one row of numbers."""

from __future__ import annotations

import re
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import fencerow.core.schema.rooms as rooms
import fencerow.core.store.tables as tables
from fencerow.core.schema.building import indexes_of
from fencerow.core.store import store
from fencerow.db.migration import migrations
from fencerow.db.queries import Query
from fencerow.db.run import Steps, as_int, execute, operation
from fencerow.errors import SchemaTampered, SchemaTooOld
from tests.core.schema.starter import engine_of
from tests.house.tree import ROOT
from tests.kit.jobs import AnyEngine, submit

BEATS = """-- compatible_from: 8
-- Beats: a throw-away feature.
CREATE TABLE fencerow.beats (worker TEXT PRIMARY KEY, count INTEGER NOT NULL);

-- next transaction: one more
CREATE TABLE fencerow.beat_marks (one INTEGER NOT NULL);
"""
BEAT = """-- name: beat
-- Count a beat.
INSERT INTO fencerow.beats AS known (worker, count) VALUES (:worker, 1)
ON CONFLICT (worker) DO UPDATE SET count = known.count + 1
RETURNING count;
"""


def test_migrations_are_numbered_through_wherever_they_lie() -> None:
    numbers = {dialect: [each.version for each in store.known_migrations(dialect)] for dialect in DIALECTS}
    assert numbers["postgres"] == numbers["sqlite"] == sorted(set(numbers["sqlite"])), (
        "one that nobody needed is left out"
    )
    names = {dialect: [each.name for each in store.known_migrations(dialect)] for dialect in DIALECTS}
    assert names["postgres"] == names["sqlite"]


DIALECTS = ("postgres", "sqlite")
RELEASES = sorted((ROOT / "tests" / "whole" / "deploys").glob("*.zip"))
LAST = store.known_migrations("sqlite")[-1].version
NAME = f"schema_{LAST + 1:04d}_beats"


@pytest.mark.parametrize("release", RELEASES, ids=lambda path: path.stem)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_what_a_release_brought_keeps_its_name_and_its_text(release: Path, dialect: str) -> None:
    """A database to which a migration was applied knows it by both."""
    kept = {
        Path(name).name: zipfile.Path(release, name).read_text("utf-8")
        for name in zipfile.ZipFile(release).namelist()
        if f"/{dialect}/schema/" in name
    }
    known = {
        f"{each.name.removeprefix('schema_')}.sql": each.text for each in store.known_migrations(dialect)
    }
    assert kept
    assert kept.items() <= known.items(), (
        "before the first release, keep the code anew: tools/keep_release.py"
    )


def test_an_index_of_a_table_in_use_is_built_beside_its_users() -> None:
    """CREATE INDEX keeps writers out for as long as it takes. A table that the migration makes itself has none yet."""
    for each in store.known_migrations("postgres"):
        made = set(re.findall(r"CREATE TABLE fencerow\.(\w+)", each.text))
        for number, part in enumerate(each.parts):
            if part.concurrently:
                assert indexes_of(store.postgres_queries()[each.part(number)]), "nothing but plain indexes"
            else:
                on = set(re.findall(r"^CREATE .*INDEX \w+ ON fencerow\.(\w+)", part.text, re.MULTILINE))
                assert on <= made, (
                    f"{each.name}: put the indexes on {on - made} below `-- built concurrently: why`"
                )


def test_what_locks_a_table_in_use_asks_for_it_briefly() -> None:
    """Who acknowledges waits behind an ALTER TABLE that waits: it asks briefly, and the migrator asks again.

    Nobody uses a table that the migration makes itself.
    """
    for each in store.known_migrations("postgres"):
        made = "|".join(re.findall(r"CREATE TABLE (fencerow\.\w+)", each.text)) or "-"
        for part in each.parts:
            used = rf"^(?!ALTER TABLE ({made})\b)(ALTER TABLE|LOCK TABLE|DROP|CREATE TRIGGER)"
            if re.search(used, part.text, re.MULTILINE):
                assert "SET LOCAL lock_timeout = '500ms';" in part.text, each.name


def test_files_build_nothing_concurrently() -> None:
    """A file has one writer; its migrations say `next transaction`, or nothing."""
    assert not any(part.concurrently for each in store.known_migrations("sqlite") for part in each.parts)


@pytest.mark.parametrize(
    "text", ["CREATE INDEX a ON b (c)", "CREATE UNIQUE INDEX a ON b (c) WHERE d IS NULL"]
)
def test_what_is_built_concurrently_is_plainly_written(text: str) -> None:
    (index,) = indexes_of(Query("part", (text,), ()))

    assert index.create("a ON") == text
    with pytest.raises(ValueError, match="can only make indexes"):
        indexes_of(Query("part", ("ALTER TABLE b ADD COLUMN c text",), ()))


@pytest.fixture(params=DIALECTS)
def migrated(request: pytest.FixtureRequest) -> tuple[str, str]:
    """A database with the tables of this code: its dialect, and where it is."""
    name = "sqlite_path" if request.param == "sqlite" else "empty_postgres_url"
    place = (request.param, str(request.getfixturevalue(name)))
    engine = engine_of(*place)
    store.migrate(engine)
    engine.close()
    return place


@pytest.fixture
def wing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The package of a wing that brings a migration and a query, as its record would have told it."""
    for dialect in DIALECTS:
        schema = tmp_path / "beats_wing" / dialect / "schema"
        schema.mkdir(parents=True)
        (schema / f"{LAST + 1:04d}_beats.sql").write_text(BEATS)
        (schema.parent / "beats.sql").write_text(BEAT)
    (tmp_path / "beats_wing" / "__init__.py").write_text("")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "beats_wing", raising=False)
    monkeypatch.setattr(rooms, "_of_wings", list(rooms._of_wings))
    yield tmp_path / "beats_wing"
    forget_queries()


def forget_queries() -> None:
    """Let them be loaded again, from the packages that are known now."""
    tables.postgres_queries.cache_clear()
    tables.sqlite_queries.cache_clear()
    migrations.cache_clear()


def opened(place: tuple[str, str]) -> AnyEngine:
    """The database as code with the wing sees it."""
    rooms.add_packages(("beats_wing",))
    forget_queries()
    return engine_of(*place)


@operation()
def beat(worker: str) -> Steps[int]:
    """As an operation of the wing would be."""
    return as_int((yield from execute("beat", worker=worker))[0][0])


@pytest.mark.usefixtures("wing")
def test_the_migration_of_a_wing_is_applied_after_those_of_before(migrated: tuple[str, str]) -> None:
    older = engine_of(*migrated)
    newer = opened(migrated)
    with pytest.raises(SchemaTooOld, match=rf"(?s)migration {LAST}.*migration {LAST + 1}"):
        store.check_schema(newer)

    assert [each.name for each in store.migrate(newer)] == [NAME]
    assert [each.version for each in store.check_schema(newer)][-1] == LAST + 1
    assert store.migrate(newer) == []
    assert [newer.run(beat("a")) for _ in range(2)] == [1, 2]

    submit(older)  # whose code does not know the migration, and which the migration lets go on
    for engine in (older, newer):
        engine.close()


def test_the_migration_of_a_wing_is_refused_when_its_text_was_changed(
    migrated: tuple[str, str], wing: Path
) -> None:
    engine = opened(migrated)
    store.migrate(engine)
    (file,) = wing.glob(f"{migrated[0]}/schema/*.sql")
    file.write_text(BEATS.replace("one INTEGER", "two INTEGER"))
    forget_queries()

    for attempt in (store.check_schema, store.migrate):
        with pytest.raises(SchemaTampered, match=rf"migration {LAST + 1} \({NAME}\)"):
            attempt(engine)
    engine.close()
