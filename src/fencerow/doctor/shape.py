"""Whether the tables are still what the migrations made of them: the ledger alone only says that they once were.

What they should be lies beside the migrations of each wing as `shape.json`, printed from a fresh database by
`tools/shape.py`. What is there besides (an index of the operator's own) is nobody's business.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from importlib.resources import files

import msgspec

from fencerow.core.finding import Finding, fail, ok
from fencerow.core.schema.rooms import packages
from fencerow.db.postgres import PostgresEngine
from fencerow.db.run import Steps, execute, operation
from fencerow.db.sqlite import SqliteEngine

FILE = "shape.json"
SHOWN_MAX = 5
OURS = "fencerow_"  # what stands before names on SQLite, as it is written in the file
Shape = Mapping[str, str]  # "kind name" to its definition


@operation(alone=True, repeatable=True, writes="")
def postgres_shape(schema: str) -> Steps[dict[str, str]]:
    """Everything that our tables consist of, without the name of the schema."""
    rows = yield from execute("shape", schema=schema)
    return {f"{kind} {name}": _one_line(text) for kind, name, text in rows}


@operation(repeatable=True, writes="")
def sqlite_shape(prefix: str) -> Steps[dict[str, str]]:
    """The same of a file, with our own prefix in place of the one that is set."""
    rows = yield from execute("shape", schema=prefix)
    ours = re.compile(rf"\b{re.escape(prefix)}")
    return {
        f"{kind} {ours.sub(OURS, str(name))}": ours.sub(OURS, _one_line(text)) for kind, name, text in rows
    }


def shape_of(engine: PostgresEngine | SqliteEngine) -> Shape:
    """The shape of this engine's database, written as in `shape.json`."""
    if isinstance(engine, SqliteEngine):
        return engine.run(sqlite_shape(engine.prefix))
    return engine.run(postgres_shape(engine.schema))


def expected(dialect: str) -> Shape:
    """What the migrations of the core and of all wings make."""
    found: dict[str, str] = {}
    for package in packages():
        file = files(package).joinpath(dialect, FILE)
        if file.is_file():  # one whose migrations make nothing has none
            found |= msgspec.json.decode(file.read_bytes(), type=dict[str, str])
    return found


def examine_shape(engine: PostgresEngine | SqliteEngine) -> Iterator[Finding]:
    """What is missing and what is not as it should be."""
    wanted, found = expected(engine.dialect), shape_of(engine)
    wrong = [(what, text, found.get(what)) for what, text in wanted.items() if found.get(what) != text]
    if not wrong:
        yield ok("tables", f"{len(wanted)} columns, indexes and constraints are as the migrations made them")
    for what, text, instead in wrong[:SHOWN_MAX]:
        if instead is None:
            yield fail("tables", f"{what} is missing", _made_again(engine, what, text))
        elif instead.endswith(" INVALID"):
            yield fail(
                "tables",
                f"{what} was not built to its end, so nothing uses it",
                "run `fencerow migrate`, which builds it again beside the work of others",
            )
        elif what.startswith("function "):
            yield fail("tables", f"{what} was changed: {instead}"[:300], "make it as `fencerow sql` has it")
        else:
            yield fail("tables", f"{what} was changed: {instead}"[:300], f"it should be: {text}"[:400])
    if len(wrong) > SHOWN_MAX:
        yield fail("tables", f"and {len(wrong) - SHOWN_MAX} more", "restore the schema from `fencerow sql`")


def _made_again(engine: PostgresEngine | SqliteEngine, what: str, text: str) -> str:
    """The advice for what is missing. It is not cut off: people run what it says."""
    kind, _, name = what.partition(" ")
    if kind == "constraint":
        table, _, rule = name.partition(".")
        text = f"ALTER TABLE {table} ADD CONSTRAINT {rule} {text}"
    path = f'SET search_path TO "{engine.schema}"; ' if isinstance(engine, PostgresEngine) else ""
    return f"it was dropped by hand; make it again: {path}{text}"


def _one_line(text: object) -> str:
    return re.sub(r"\s+", " ", re.sub(r"--[^\n]*", "", str(text))).strip()
