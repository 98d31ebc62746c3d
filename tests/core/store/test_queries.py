"""The two dialects say the same, and every statement has the shape that the house's rules ask."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache

import pytest

from fencerow.core.schema.rooms import packages
from fencerow.core.store import store
from fencerow.core.store.points import POINTS
from fencerow.core.wing import wings
from fencerow.db import query_files
from fencerow.db.queries import Query
from fencerow.db.sqlite import SqliteEngine
from tests.core.store.stage import table
from tests.house.tree import ROOT
from tests.kit.jobs import AnyEngine

# Whose queries are all asked for by their names; those of the doctor and of users' ledgers are their own.
# Whoever uses the queries: the core, and each wing its own.
USERS = ("db", "core", *(package.removeprefix("fencerow.").replace(".", "/") for package in packages()[1:]))
DIALECTS = ("postgres", "sqlite")
# What SQLite is given and does not ask for: arrivals that were taken are gone from its index at once, no end passes
# turns on, and a session looks which jobs it has stored.
UNASKED = {
    "submit": {"count"},
    "succeed": {"alone"},
    "succeed_first": {"alone"},
    "take_arrivals": {"after"},
    "turns_wanted": {"after"},
}
QUERIES = {"postgres": store.postgres_queries(), "sqlite": store.sqlite_queries()}
MIGRATIONS = [each for dialect in DIALECTS for each in store.known_migrations(dialect)]
SCHEMA = {each.part(number) for each in MIGRATIONS for number in range(len(each.parts))}

# Said in one dialect only, with the reason.
ONLY: dict[str, dict[str, str]] = {
    "sqlite": {
        "ensure_workers": "the workers' file is made with each connection; it has no ledger",
        **dict.fromkeys(
            (
                "begin_move",
                "close_for_move",
                "count_jobs_running",
                "end_move",
                "forget_move",
                "own_no_payloads",
                "own_payloads_again",
            ),
            "jobs move out of a file",
        ),
    },
    "postgres": {
        "submit_alike": "SQLite reads one document in less time than three arrays",
        **dict.fromkeys(
            ("before_copy", "copy_gated", "copy_jobs", "refuse_repeated", "lock_free_turns"),
            "SQLite has no COPY",
        ),
        "submit_one_keyed": "a file asks no round trip for each statement of a submit",
        **dict.fromkeys(("wal_position", "wal_replayed"), "a file has no standby"),
        **dict.fromkeys(
            (
                "begin_filling",
                "count_parts",
                "forget_filling",
                "list_parts",
                "open_filled",
                "own_payloads",
                "pass_filling",
                "put_part",
                "remove_parts",
            ),
            "jobs move into a server",
        ),
        "metrics_lock_waits": "a file has no sessions that wait for locks",
        **dict.fromkeys(
            ("horizon_blocks", "horizon_cost", "horizon_holders"),
            "what holds a file back are its own readers, see WAL",
        ),
        **dict.fromkeys(
            ("lock_passed_over", "wait_for_locks"), "one writer locks no rows, so a claim passes none over"
        ),
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
    "fall_back": "nobody runs it: it is queued",
    "time_out": "names the holder and the attempt that the holder's own row calls overdue",
    "cancel_idle": "nobody runs it",
    "change": "nobody runs it",
    "replace_jobs": "nobody runs it, and nobody ever has",
    "give_turns": "nobody runs it: it waits at its gate",
    "give_alike": "nobody runs it: it waits at its gate",
    "suspend_new": "inserted by this very transaction and never claimed",
    "wake": "nobody runs it: it is suspended",
    "send_on": "nobody runs it: it waits at its gate",
    "take_turns_back": "nobody runs it: it is queued",
    "move_back": "nobody runs it: it waits for its time, which it says wrongly",
    "ask_cancel": "it asks and moves nothing; the holder's own writes stay fenced",
    "expire": "nobody runs it",
    "hold_flow_jobs": "nobody runs it: this very transaction revived it",
    "disown": "nobody runs it",
    "archive": "an earlier statement of the same transaction ended it under its own guard",
    "withdraw": "inserted by this very transaction and never claimed",
    "mark_awaited": "it moves nothing: who waits is no part of an attempt",
    "reclaim": "names the dead holder by value, and on PostgreSQL the attempt it found",
}


def texts(dialect: str) -> list[tuple[str, str]]:
    """Every named query of a dialect, its fragments written out: name and body with its prose."""
    return [
        pair
        for package in (*packages(), "fencerow.migrations")
        for pair in written_out(package, dialect).items()
    ]


@cache
def written_out(package: str, dialect: str) -> Mapping[str, str]:
    jobs, *others = packages()
    given = POINTS.filled([jobs, *others], dialect)
    lent = given if package == jobs else query_files.fragments(jobs, dialect, given)
    return query_files.texts(package, dialect, lent)


def bare(body: str) -> str:
    """SQL without strings and comments."""
    return re.sub(r"'(?:[^']|'')*'|--[^\n]*", " ", body)


def test_no_wing_replaces_a_query_of_another() -> None:
    for dialect in DIALECTS:
        names = [name for package in packages() for name in written_out(package, dialect)]
        assert sorted(names) == sorted(set(names)), dialect


def test_no_fragment_stays_a_name() -> None:
    left = [
        (dialect, name)
        for dialect in DIALECTS
        for name, query in QUERIES[dialect].items()
        if any("{{" in text for text in query.statements)
    ]
    assert left == []


def test_both_dialects_have_the_same_queries() -> None:
    names = {dialect: set(QUERIES[dialect]) - ONLY[dialect].keys() - SCHEMA for dialect in DIALECTS}
    assert names["postgres"] == names["sqlite"]
    for dialect in DIALECTS:
        assert ONLY[dialect].keys() <= set(QUERIES[dialect]), "a listed exception is none any more"


def test_both_dialects_take_the_same_parameters() -> None:
    postgres, sqlite = (
        {name: set(query.parameters) for name, query in QUERIES[dialect].items()} for dialect in DIALECTS
    )
    both = postgres.keys() & sqlite.keys()
    assert [name for name in sorted(both) if postgres[name] != sqlite[name] | UNASKED.get(name, set())] == []


def test_the_store_uses_every_query_and_every_used_one_exists() -> None:
    sources = [
        file.read_text("utf-8") for room in USERS for file in (ROOT / "src" / "fencerow" / room).rglob("*.py")
    ]
    sources += [f'execute("{name}"' for wing in wings() for name in (wing.used, *wing.came)]
    used = {
        name
        for source in sources
        for pattern in (
            r'(?:execute|execute_fresh|execute_ahead|Statement)\(\s*"([a-z_]+)"',
            r'_then_archive\("([a-z_]+)"',
            r'_(?:purged|woken|by_pages)\(\s*"([a-z_]+)"',
            r'queries\["([a-z_]+)"\]',
            r'"([a-z]+_used)"',  # asked by Dormant, or by retention for a wing
        )
        for name in re.findall(pattern, source)
    }
    for dialect in DIALECTS:
        everything = set(QUERIES[dialect]) - SCHEMA
        assert everything - used == set(), "nobody uses these"
        assert used - everything - ONLY["sqlite"].keys() - ONLY["postgres"].keys() == set(), (
            "these do not exist"
        )


def test_statements_keep_the_rules_of_shape() -> None:
    wrong = [
        f"{dialect}, {name}: {fault}"
        for dialect in DIALECTS
        for name, body in texts(dialect)
        for fault in misshapen(dialect, name, bare(body))
    ]
    assert wrong == []


def misshapen(dialect: str, name: str, sql: str) -> Iterator[str]:
    """What would do something else than its author meant."""
    if "::" in sql:
        yield "write CAST(x AS type): a colon pair reads as a parameter"
    if dialect == "postgres" and limited_subqueries(sql):
        yield "IN (SELECT … LIMIT) may take more than the limit: use ANY(ARRAY(…))"
    if dialect == "postgres" and re.search(r"(?<!fencerow\.)\bnow\(\)", sql):
        yield "the schema's own clock decides: write fencerow.now()"
    if "current_timestamp" in sql.lower() and name != "make_ledger":
        yield "the schema's own clock decides, not current_timestamp"


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


def test_what_is_misshapen_would_be_found() -> None:
    limited = "WHERE id IN (SELECT x FROM y WHERE (a) LIMIT 3)"
    for sql in (limited, "SELECT a::text", "WHERE at < now()", "WHERE at < CURRENT_TIMESTAMP"):
        assert len(list(misshapen("postgres", "a", sql))) == 1, sql
    for sql in ("WHERE id IN (SELECT x FROM y) LIMIT 3", "WHERE at < fencerow.now()"):
        assert not list(misshapen("postgres", "a", sql)), sql


def writes_on_jobs(query: Query) -> list[str]:
    """Those on the live jobs; with the whole script where it writes what it found under its guard, in `ended`."""
    return [
        " ".join(query.statements) if "fencerow_ended" in text else text
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
    assert UNFENCED.keys() & QUERIES[dialect].keys() <= unfenced, "these need no exception any more"


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

    assert raised.keys() == {"claim"}, "only a claim begins an attempt"
    assert {value.removeprefix("job.") for value in raised.values()} == {"attempt + 1"}


def test_both_job_tables_have_the_same_columns_in_the_same_order(engine: AnyEngine) -> None:
    """Rows are read so by the view over both, with the lane behind them: SQLite computes it in the table."""
    live, finished, both = (columns(engine, name) for name in ("jobs", "finished_jobs", "all_jobs"))
    assert [*finished, "lane"] == both and len(finished) > 30
    assert live == (both if isinstance(engine, SqliteEngine) else finished)


def test_a_job_is_archived_with_every_column(engine: AnyEngine) -> None:
    """A column that a script does not name would be lost with the end of its job."""
    for name in ("succeed", "succeed_first", "archive"):
        text = " ".join(engine.queries[name].statements)
        for listed in re.findall(r"(?:finished_jobs|fencerow_ended) \(([^)]*)\)", text):
            named = [each.strip() for each in listed.split(",")]
            assert sorted(named) == sorted(columns(engine, "finished_jobs")), name


def columns(engine: AnyEngine, name: str) -> list[str]:
    with engine.session() as session:
        cursor = session.connection.execute(f"SELECT * FROM {table(engine, name)} LIMIT 0")
        return [column[0] for column in cursor.description or ()]
