"""The loader of named queries: what is a parameter and what is not, how tables are renamed, what tests may alter."""

from __future__ import annotations

from pathlib import Path

import pytest

from fencerow.core.store import store
from fencerow.db.queries import (
    Queries,
    Query,
    identifier,
    numbered,
    postgres_names,
    pyformat,
    qualified,
    split,
    sqlite_names,
    translated,
)
from fencerow.db.query_files import expanded, parse, texts
from fencerow.errors import ConfigError

FILE = """-- Prose of the file, with a colon: here.

-- name: first
-- What it does: not a :parameter.
SELECT ':no', 'it''s; :neither', CAST(:id AS text) FROM fencerow.jobs; -- and :this

-- name: second
DELETE FROM fencerow.keys WHERE a = :a AND b = :b OR a = :a;
UPDATE fencerow.jobs SET x = 'a;b' WHERE id = :id;
"""


def mark(name: str) -> str:
    return f"<{name}>"


def test_a_file_is_split_at_its_names() -> None:
    pairs = dict(parse(FILE))
    assert pairs.keys() == {"first", "second"}
    assert "Prose" not in "".join(pairs.values())


SHARED = """-- name: look
-- The {{fence}} is named in prose as well.
SELECT 1
FROM fencerow.jobs AS job
    WHERE {{fence}}
    FOR SHARE;

-- fragment: fence
-- Guard: the attempt.
job.id = :id
  AND {{running}}

-- name: end
DELETE FROM fencerow.jobs AS job WHERE {{running}} AND ({{running}});
"""
RUNNING = "-- fragment: running\n-- Still.\njob.state = 'running'\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package with queries of its own."""
    found = tmp_path / "shared_queries" / "sqlite"
    found.mkdir(parents=True)
    (found / "a.sql").write_text(RUNNING)
    (found / "b.sql").write_text(SHARED)
    monkeypatch.syspath_prepend(str(tmp_path))
    return found


@pytest.mark.usefixtures("folder")
def test_a_fragment_is_written_out_where_its_name_stands() -> None:
    found = texts("shared_queries", "sqlite")

    assert found.keys() == {"look", "end"}
    assert split(found["look"]) == (
        "SELECT 1\nFROM fencerow.jobs AS job\n    WHERE job.id = :id\n      AND job.state = 'running'\n    FOR SHARE",
    )
    assert found["end"].count("job.state = 'running'") == 2
    assert "The {{fence}} is named" in found["look"], "prose stays as it is"


def test_no_comment_of_a_fragment_swallows_what_stands_behind_it(folder: Path) -> None:
    (folder / "c.sql").write_text(
        "-- fragment: late\n-- It's so.\n    -- or not\nx <> '--'  -- nobody's\n  AND y = 'a''--b' -- yet\n"
        "-- name: late\nDELETE FROM fencerow.jobs WHERE ({{late}}) AND id = :id;\n"
    )

    (statement,) = split(texts("shared_queries", "sqlite")["late"])

    assert statement == "DELETE FROM fencerow.jobs WHERE (x <> '--'\n  AND y = 'a''--b') AND id = :id"


def test_an_unknown_fragment_is_refused_by_its_name() -> None:
    with pytest.raises(ConfigError) as refused:
        expanded("claim", "SELECT 1 WHERE {{fense}}", {"fence": "true"})
    assert "'claim'" in refused.value.what and "'fense'" in refused.value.what
    assert "'fence'" in refused.value.why


def test_a_fragment_knows_only_those_above_it(folder: Path) -> None:
    (folder / "a.sql").write_text("")
    (folder / "c.sql").write_text(RUNNING)
    with pytest.raises(ConfigError, match="'fence' stands on the fragment 'running', which does not exist"):
        texts("shared_queries", "sqlite")


@pytest.mark.parametrize("text", [RUNNING, "-- name: end\nSELECT 1;\n"], ids=["fragment", "query"])
def test_a_name_is_given_once(folder: Path, text: str) -> None:
    (folder / "c.sql").write_text(text)
    with pytest.raises(ConfigError, match="defined twice"):
        texts("shared_queries", "sqlite")


def test_what_both_dialects_say_stands_before_their_own_of_that_file(folder: Path) -> None:
    both = folder.parent / "both"
    both.mkdir()
    (folder / "a.sql").rename(both / "a.sql")
    (folder / "a.sql").write_text("-- fragment: still\n{{running}}\n")

    assert texts("shared_queries", "sqlite").keys() == {"look", "end"}
    (folder / "a.sql").write_text(RUNNING)
    with pytest.raises(ConfigError, match="defined twice"):
        texts("shared_queries", "sqlite")


def test_strings_and_comments_hold_no_parameters_and_no_ends() -> None:
    (statement,) = split(dict(parse(FILE))["first"])
    assert statement == "SELECT ':no', 'it''s; :neither', CAST(:id AS text) FROM fencerow.jobs"
    assert translated(statement, mark).count("<") == 1
    assert len(split(dict(parse(FILE))["second"])) == 2


def test_each_driver_gets_its_own_style() -> None:
    text = "SELECT '100%', :a, ':a', :b, :a, x % 2"
    assert pyformat(text) == "SELECT '100%%', %(a)s, ':a', %(b)s, %(a)s, x %% 2"
    assert numbered(text, ("a", "b")) == "SELECT '100%', $1, ':a', $2, $1, x % 2"


def test_a_cast_by_colons_is_no_parameter() -> None:
    assert translated("SELECT a::text, b:c", mark) == "SELECT a::text, b:c"


@pytest.mark.parametrize(
    ("rename", "expected"),
    [
        (
            postgres_names("shop"),
            """SELECT 'fencerow.jobs' FROM "shop".jobs, "shop".workers -- fencerow.keys""",
        ),
        (
            sqlite_names("shop_"),
            """SELECT 'fencerow.jobs' FROM shop_jobs, shop_file.shop_workers -- fencerow.keys""",
        ),
    ],
)
def test_tables_are_renamed_outside_of_strings(rename: object, expected: str) -> None:
    text = "SELECT 'fencerow.jobs' FROM fencerow.jobs, fencerow.workers -- fencerow.keys"
    assert qualified(text, rename) == expected  # type: ignore[arg-type]


def test_a_guard_is_taken_out_of_a_copy() -> None:
    queries = Queries("x", {"q": Query("q", ("SELECT :a WHERE b = :b",), ("a", "b"))})
    altered = queries.altered("q", "b = :b", "true")
    assert altered["q"].statements == ("SELECT :a WHERE true",)
    assert altered["q"].parameters == ("a",)
    assert queries["q"].parameters == ("a", "b")
    with pytest.raises(ValueError, match="does not contain"):
        queries.altered("q", "c = 1", "true")


def test_what_others_replace_is_theirs_whether_it_was_read_or_not() -> None:
    unread = Queries("x", {}, postgres_names("shop"), {"q": "SELECT :a", "r": "SELECT :b"})
    altered = unread.altered("q", ":a", ":z")

    assert list(altered) == ["q", "r"] and "q" in altered and "s" not in altered
    assert [altered[name].parameters for name in altered] == [("z",), ("b",)]
    assert altered.joined(unread)["q"].parameters == ("a",)
    elsewhere = Queries("x", {}, postgres_names("depot"), {"s": "SELECT 1 FROM fencerow.jobs"})
    assert '"depot".jobs' in unread.joined(elsewhere)["s"].statements[0], "each is read with names of its own"
    with pytest.raises(KeyError):
        altered["s"]


def test_only_what_a_value_is_written_into_is_looked_through_at_each_call() -> None:
    """`'share:'` looks like the begin of such a place. To look for one costs more Python than to send a claim."""
    queries = store.postgres_queries()
    assert not [
        name for name in ("claim", "lanes", "submit", "submit_one", "succeed") if queries[name].spells
    ]
    assert Queries("x", {}, postgres_names("shop"), {"q": """SELECT 'a:', :'b'"""})["q"].spells
    assert Queries("x", {}, postgres_names("shop"), {"q": """SELECT 'a:', 1 AS :"b\""""})["q"].spells


def test_parameters_come_in_order_of_first_use() -> None:
    assert store.postgres_queries()["fetch_args"].parameters == ("id", "holder", "attempt")


@pytest.mark.parametrize("dialect", ["postgres", "sqlite"])
def test_every_migration_is_a_query_with_a_checksum_and_a_floor(dialect: str) -> None:
    steps = store.known_migrations(dialect)
    versions = [step.version for step in steps]
    assert versions == sorted(set(versions)), "wings come in any order, but no two take one number"
    for step in steps:
        assert 1 <= step.compatible_from <= step.version
        assert len(step.checksum) == 64
        assert step.name in (store.postgres_queries() if dialect == "postgres" else store.sqlite_queries())


@pytest.mark.parametrize("name", ["ok", "_x", "a1_b", "a" * 49])
def test_plain_names_are_accepted(name: str) -> None:
    assert identifier(name, "schema name") == name


@pytest.mark.parametrize("name", ["", "A", "1a", "a-b", "a b", "a" * 50, 'a"', "a\n", "ä"])
def test_other_names_are_refused_with_advice(name: str) -> None:
    with pytest.raises(ConfigError, match="lower-case"):
        identifier(name, "schema name")
