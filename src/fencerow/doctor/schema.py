"""Whether the tables are those that this code knows."""

from __future__ import annotations

from collections.abc import Iterator

from fencerow.core.finding import Finding, fail, info, ok
from fencerow.core.schema.migrate import judged, ledger, ledger_name, refuse_foreign
from fencerow.core.schema.rooms import known_migrations
from fencerow.db.engine import Engine


def foreign(engine: Engine) -> list[Finding]:
    """Nothing, where the database may be opened without leaving traces in what is not ours.

    Raises:
        SchemaMissing: a SQLite file without our tables.
    """
    refuse_foreign(engine)
    return []


def examine_schema(engine: Engine) -> Iterator[Finding]:
    """The ledger against the migrations in this package: missing, newer, changed.

    Raises:
        SchemaTooNew, SchemaTampered: as `check_schema` does.
    """
    known = known_migrations(engine.dialect)
    applied = engine.run(ledger(ledger_name(engine)))
    if not applied:
        yield fail("schema", "this database has no Fencerow tables", "run `fencerow migrate`")
        return
    missing = judged(applied, known)
    if missing:
        yield fail(
            "schema",
            f"migration {applied[-1].version} of {known[-1].version} is applied",
            "run `fencerow migrate`",
        )
        return
    yield ok("schema", f"migration {applied[-1].version}, all checksums match")
    newer = [row.version for row in applied if row.version > known[-1].version]
    if newer:
        yield info(
            "schema", f"migrations {newer} are of a newer Fencerow that works with this one", "upgrade soon"
        )
