"""The two dialects say the same, and every statement has the shape that the house's rules ask."""

from __future__ import annotations

import re
from collections import Counter
from importlib.resources import files

import pytest

from fencerow.core.db import queries
from fencerow.core.db.queries import Query
from fencerow.core.store import store
from fencerow.core.store.tables import packages
from tests.core.store.stage import table
from tests.house.tree import ROOT
from tests.kit.jobs import AnyEngine

# Whose queries are all asked for by their names; those of the doctor and of users' ledgers are their own.
# Whoever uses the queries: the core, and each wing its own.
USERS = ("core", *(package.removeprefix("fencerow.").replace(".", "/") for package in packages()[1:]))
DIALECTS = ("postgres", "sqlite")
QUERIES = {"postgres": store.postgres_queries(), "sqlite": store.sqlite_queries()}
MIGRATIONS = [each for dialect in DIALECTS for each in store.known_migrations(dialect)]
SCHEMA = {each.part(number) for each in MIGRATIONS for number in range(len(each.parts))}

# Said in one dialect only, with the reason.
ONLY: dict[str, dict[str, str]] = {
    "sqlite": {
        "ensure_workers": "the workers' file is made with each connection; it has no ledger",
        "widen_workers": "and so it is brought up to date",
    },
    "postgres": {
        **dict.fromkeys(("before_copy", "copy_gated", "copy_jobs", "refuse_repeated"), "SQLite has no COPY"),
        **dict.fromkeys(
            (
                "close_periods",
                "detach_period",
                "drop_period",
                "finalize_period",
                "forget_lost_periods",
                "forget_period",
                "forget_period_events",
                "forget_period_logs",
                "forget_period_progress",
                "leave_period",
                "make_partition",
                "open_period",
                "owns_periods",
                "periods",
                "take_period",
                "try_periods_lock",
            ),
            "periods are partitions, which SQLite has not",
        ),
        **dict.fromkeys(
            (
                "be_brief",
                "broken_indexes",
                "building_progress",
                "building_under_way",
                "find_index",
                "finish_work",
                "hold_work",
                "leaves_without_index",
                "make_vacuum_yield",
                "release_work",
                "renew_work",
                "set_aside_indexes",
                "take_work",
            ),
            "one writer has the file for itself, so its indexes are made in the migration's transaction",
        ),
    },
}
# Statements on running jobs that name no holder and attempt, with the reason.
UNFENCED = {
    "claim": "it makes the fence: the job is queued",
    "claim_suspect": "it makes the fence: the job is queued",
    "claim_in_turn": "it makes the fence: the job is queued",
    "claim_labelled": "it makes the fence: the job is queued, or waits for a label of the worker",
    "claim_labelled_suspect": "it makes the fence: the job is queued, or waits for a label of the worker",
    "fall_back": "nobody runs it: it waits for a label",
    "time_out": "names the holder and the attempt that the holder's own row calls overdue",
    "cancel_idle": "nobody runs it",
    "change": "nobody runs it",
    "replace_jobs": "nobody runs it, and nobody ever has",
    "give_turns": "nobody runs it: it waits at its gate",
    "send_on": "nobody runs it: it waits at its gate",
    "take_turns_back": "nobody runs it: it is queued",
    "move_back": "nobody runs it: it waits for its time, which it says wrongly",
    "ask_cancel": "it asks and moves nothing; the holder's own writes stay fenced",
    "expire": "nobody runs it",
    "disown": "nobody runs it",
    "archive": "an earlier statement of the same transaction ended it under its own guard",
    "withdraw": "inserted by this very transaction and never claimed",
    "mark_awaited": "it moves nothing: who waits is no part of an attempt",
    "reclaim": "names the dead holder by value, and on PostgreSQL the attempt it found",
}
KEYWORDS = re.findall(
    r"\w+",
    """select insert update delete from where and or not null set values returning order by group limit offset
    join left cross lateral with recursive materialized union all exists in as on conflict do nothing case when
    then else end is distinct into using any array between cast for skip share create table index unique
    primary key default check view function""",
)
# Words that are also names of ours: a column may be called key, an alias next to it may not be a keyword.
ALSO_NAMES = {
    "key",
    "index",
    "left",
    "all",
    "any",
    "default",
    "end",
    "values",
    "on",
    "set",
    "view",
    "by",
    "share",
}


def texts(dialect: str) -> list[tuple[str, str]]:
    """Every named query of a dialect, its fragments written out: name and body with its prose."""
    return [
        pair
        for package in (*packages(), "fencerow.migrations")
        for pair in queries.texts(package, dialect).items()
    ]


def bare(body: str) -> str:
    """SQL without strings and comments."""
    return re.sub(r"'(?:[^']|'')*'|--[^\n]*", " ", body)


NAMED = [
    pytest.param(dialect, name, body, id=f"{dialect}-{name}")
    for dialect in DIALECTS
    for name, body in texts(dialect)
]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_no_wing_replaces_a_query_of_another(dialect: str) -> None:
    names = [name for package in packages() for name in queries.texts(package, dialect)]
    assert sorted(names) == sorted(set(names))


@pytest.mark.parametrize("dialect", DIALECTS)
def test_no_fragment_stays_a_name(dialect: str) -> None:
    left = [name for name, query in QUERIES[dialect].items() for text in query.statements if "{{" in text]
    assert not left


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_fragment_stands_in_several_places(dialect: str) -> None:
    for package in (*packages(), "fencerow.migrations"):
        written = [
            line
            for file in files(package).joinpath(dialect).iterdir()
            if file.name.endswith(".sql")
            for line in file.read_text("utf-8").splitlines()
        ]
        defined = {line.removeprefix("-- fragment: ") for line in written if line.startswith("-- fragment: ")}
        used = Counter(
            name for line in written if line[:2] != "--" for name in re.findall(r"{{(.*?)}}", line)
        )
        assert {name for name, times in used.items() if times > 1} == defined, (
            "what stands once needs no name"
        )


def test_both_dialects_have_the_same_queries() -> None:
    names = {dialect: set(QUERIES[dialect]) - ONLY[dialect].keys() - SCHEMA for dialect in DIALECTS}
    assert names["postgres"] == names["sqlite"]
    for dialect in DIALECTS:
        assert ONLY[dialect].keys() <= set(QUERIES[dialect]), "a listed exception is none any more"


@pytest.mark.parametrize("name", sorted(set(QUERIES["postgres"]) & set(QUERIES["sqlite"])))
def test_both_dialects_take_the_same_parameters(name: str) -> None:
    found = {dialect: set(QUERIES[dialect][name].parameters) for dialect in DIALECTS}
    assert found["postgres"] == found["sqlite"]


def test_the_store_uses_every_query_and_every_used_one_exists() -> None:
    sources = [
        file.read_text("utf-8") for room in USERS for file in (ROOT / "src" / "fencerow" / room).rglob("*.py")
    ]
    used = {
        name
        for source in sources
        for pattern in (
            r'(?:execute|execute_fresh|Statement)\(\s*"([a-z_]+)"',
            r'_then_archive\("([a-z_]+)"',
            r'_purged\(\s*"([a-z_]+)"',
            r'queries\["([a-z_]+)"\]',
        )
        for name in re.findall(pattern, source)
    }
    for dialect in DIALECTS:
        everything = set(QUERIES[dialect]) - SCHEMA
        assert everything - used == set(), "nobody uses these"
        assert used - everything - ONLY["sqlite"].keys() - ONLY["postgres"].keys() == set(), (
            "these do not exist"
        )


@pytest.mark.parametrize(("dialect", "name", "body"), NAMED)
def test_a_line_of_prose_stands_under_the_name(dialect: str, name: str, body: str) -> None:
    first = body.lstrip("\n").splitlines()[0]
    assert re.match(r"-- [A-Z].{8,}", first), f"say in a line what {name} does and which guard it keeps"


@pytest.mark.parametrize(("dialect", "name", "body"), NAMED)
def test_a_statement_keeps_the_rules_of_shape(dialect: str, name: str, body: str) -> None:
    sql = bare(body)
    assert "::" not in sql, "write CAST(x AS type): a colon pair reads as a parameter"
    if dialect == "postgres":
        assert not limited_subqueries(sql), (
            "IN (SELECT … LIMIT) may take more than the limit: use ANY(ARRAY(…))"
        )
        assert not re.search(r"(?<!fencerow\.)\bnow\(\)", sql), "the schema's own clock decides"
    assert "current_timestamp" not in sql.lower() or name == "make_ledger"


def limited_subqueries(sql: str) -> list[str]:
    """Every `IN (SELECT …)` whose own level has a LIMIT."""
    found = []
    for match in re.finditer(r"\bIN \(SELECT", sql):
        depth, end = 0, match.end()
        own = ""
        for position in range(match.start() + 3, len(sql)):
            depth += {"(": 1, ")": -1}.get(sql[position], 0)
            own += sql[position] if depth == 1 else ""
            if depth == 0:
                end = position
                break
        if "LIMIT" in own:
            found.append(sql[match.start() : end])
    return found


def test_the_shape_test_sees_what_it_forbids() -> None:
    assert limited_subqueries("WHERE id IN (SELECT x FROM y WHERE (a) LIMIT 3)")
    assert not limited_subqueries("WHERE id IN (SELECT x FROM y) LIMIT 3")


@pytest.mark.parametrize(("dialect", "name", "body"), NAMED)
def test_keywords_are_in_capitals(dialect: str, name: str, body: str) -> None:
    words = set(re.findall(r"(?<![.:\w])([a-z_]+)\b(?!\.)", bare(body)))
    assert words & (set(KEYWORDS) - ALSO_NAMES) == set()


def writes_on_jobs(query: Query) -> list[str]:
    return [
        text
        for text in query.statements
        if re.search(r'(UPDATE|DELETE FROM) ("fencerow"\.|fencerow_)jobs\b', text)
    ]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_write_on_a_running_job_names_holder_and_attempt(dialect: str) -> None:
    unfenced = {
        name
        for name, query in QUERIES[dialect].items()
        if not name.startswith("schema_")  # a migration of the schema is in no attempt
        for text in writes_on_jobs(query)
        if not (re.search(r"holder = (CAST\()?:holder", text) and re.search(r"attempt\b[^,]* (=|IN) ", text))
        or re.search(r"SET state = 'running'", text)
    }
    assert unfenced == UNFENCED.keys() & unfenced, "these change jobs without naming who may"
    assert UNFENCED.keys() <= unfenced, "these need no exception any more"


SET_OF_JOBS = re.compile(
    r'UPDATE (?:"fencerow"\.|fencerow_)jobs\b(?: AS \w+)?\s+SET\b(.*?)(?:\bFROM\b|\bWHERE\b|\bRETURNING\b|$)',
    re.DOTALL,
)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_nothing_lowers_the_number_of_an_attempt(dialect: str) -> None:
    raised = {
        name: value.strip()
        for name, query in QUERIES[dialect].items()
        if not name.startswith("schema_")  # a migration of the schema is in no attempt
        for text in writes_on_jobs(query)
        for assigned in re.findall(SET_OF_JOBS, text)
        for value in re.findall(r"(?<![\w.])attempt = ([^,]+)", assigned)
    }

    claims = {"claim", "claim_suspect", "claim_in_turn", "claim_labelled", "claim_labelled_suspect"}
    assert raised.keys() == claims, "only a claim begins an attempt"
    assert {value.removeprefix("job.") for value in raised.values()} == {"attempt + 1"}


def test_both_job_tables_have_the_same_columns_in_the_same_order(engine: AnyEngine) -> None:
    """Rows are copied by SELECT *, by workers of an earlier schema and by the view over both."""
    live, finished, both = (columns(engine, name) for name in ("jobs", "finished_jobs", "all_jobs"))
    assert live == finished == both and len(live) > 30


def test_a_job_is_archived_with_every_column(engine: AnyEngine) -> None:
    for name in ("succeed", "archive") if engine.dialect == "postgres" else ("succeed",):
        text = " ".join(engine.queries[name].statements)
        (listed,) = re.findall(r"finished_jobs \(([^)]*)\)", text)
        assert [each.strip() for each in listed.split(",")] == columns(engine, "finished_jobs"), name


def columns(engine: AnyEngine, name: str) -> list[str]:
    with engine.session() as session:
        cursor = session.connection.execute(f"SELECT * FROM {table(engine, name)} LIMIT 0")
        return [column[0] for column in cursor.description or ()]
