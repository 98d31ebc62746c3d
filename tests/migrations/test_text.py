"""Where the statements of a file end: strings, comments, bodies and dollar quotes stay whole."""

from __future__ import annotations

import pytest

from fencerow.errors import InvalidMigrations
from fencerow.migrations.concurrent import CREATE, DROP
from fencerow.migrations.ledger import Ledger
from fencerow.migrations.text import ending_piece, pieces

BODY = "CREATE FUNCTION f() RETURNS int AS $body$ BEGIN; COMMIT; END $body$ LANGUAGE plpgsql"
ATOMIC = "CREATE FUNCTION f(a int) RETURNS int BEGIN ATOMIC SELECT CASE WHEN a > 1 THEN 1 END; SELECT 2; END"
TRIGGER = "CREATE TRIGGER t AFTER INSERT ON a BEGIN UPDATE a SET x = 1; DELETE FROM b; END"


@pytest.mark.parametrize(
    ("dialect", "text", "found"),
    [
        ("postgres", "SELECT 1; ; SELECT 2;\n-- done\n", ["SELECT 1", "SELECT 2"]),
        ("postgres", "SELECT 'a;b'; SELECT \"c;d\"", ["SELECT 'a;b'", 'SELECT "c;d"']),
        ("postgres", r"SELECT E'a\';b'; SELECT 2", [r"SELECT E'a\';b'", "SELECT 2"]),
        ("postgres", r"SELECT 'a\'; SELECT 2", [r"SELECT 'a\'", "SELECT 2"]),
        ("postgres", "/* a; /* b; */ c; */ SELECT 1; SELECT 2", ["SELECT 1", "SELECT 2"]),
        ("postgres", f"{BODY}; SELECT 1", [BODY, "SELECT 1"]),
        ("postgres", f"{ATOMIC}; SELECT 1", [ATOMIC, "SELECT 1"]),
        ("postgres", "SELECT $$;$$, $a$ $$;$$ $a$; SELECT $1", ["SELECT $$;$$, $a$ $$;$$ $a$", "SELECT $1"]),
        ("sqlite", f"{TRIGGER}; SELECT 1;", [TRIGGER, "SELECT 1"]),
        ("sqlite", "SELECT ';' -- ; not here\n; SELECT 2", ["SELECT ';' -- ; not here", "SELECT 2"]),
        ("postgres", "", []),
        ("postgres", "/* never closed; SELECT 1;", []),
    ],
)
def test_statements_end_where_they_end(dialect: str, text: str, found: list[str]) -> None:
    assert [piece.text for piece in pieces(text, dialect)] == found


def test_a_statement_knows_its_line() -> None:
    assert [piece.line for piece in pieces("-- a\n\nSELECT\n 1;\n\n/* b\n */ SELECT 2;", "postgres")] == [
        3,
        7,
    ]


@pytest.mark.parametrize(
    ("text", "ends"),
    [
        ("COMMIT", True),
        ("begin", True),
        ("START TRANSACTION", True),
        ("ROLLBACK", True),
        ("END", True),
        ("PREPARE TRANSACTION 'x'", True),
        ("ROLLBACK TO here", False),
        ("ROLLBACK TRANSACTION TO SAVEPOINT here", False),
        ("SAVEPOINT here", False),
        ("PREPARE x AS SELECT 1", False),
        (BODY, False),
        (ATOMIC, False),
        ("COMMENT ON TABLE a IS 'COMMIT;'", False),
    ],
)
def test_what_ends_a_transaction_is_found(text: str, ends: bool) -> None:
    assert (ending_piece(pieces(text, "postgres")) is not None) is ends


@pytest.mark.parametrize(
    ("text", "name", "tab"),
    [
        ("CREATE INDEX CONCURRENTLY i ON t (a)", "i", "t"),
        ('create unique index concurrently if not exists "I x" on only s.t (a)', '"I x"', "s.t"),
        ('CREATE INDEX CONCURRENTLY i ON "S" . "T" USING gin (a)', "i", '"S" . "T"'),
        ("CREATE INDEX CONCURRENTLY ON t (a)", None, "t"),
    ],
)
def test_an_index_is_known_by_name_and_table(text: str, name: str | None, tab: str) -> None:
    found = CREATE.match(text)
    assert found is not None and (found["name"], found["tab"]) == (name, tab)


def test_a_dropped_index_is_known_by_its_name() -> None:
    found = DROP.match("DROP INDEX CONCURRENTLY s.i")
    assert found is not None and found["name"] == "s.i"
    assert not DROP.match("DROP INDEX CONCURRENTLY IF EXISTS i"), "that one may be repeated as it stands"


@pytest.mark.parametrize("name", ["", "Ledger", "a.b.c", 'x"; DROP', "a.", ".a", "a" * 50])
def test_a_ledger_that_would_need_quoting_is_refused(name: str) -> None:
    with pytest.raises(InvalidMigrations):
        Ledger.of(name)
