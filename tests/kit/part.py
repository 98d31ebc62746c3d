"""Which tests the gate plays. `--all` plays the rest, too; so does `dev.py prove`.

Left out are long campaigns and controls, marked `prove`. A control takes a guard out and must see something go wrong:
it tests a test. Left out, too, is what costs more than a tenth of a second of a processor, is named by no row of
docs/proof.md, and is not the cheapest of its file on its engine: dear.txt has the names of those that were measured so
(tools/dear.py). Of tests that differ in nothing but the engine, its journal, the mode of a race, the kind of connection
or the point of a crash or of a cut, a part is played. It is drawn by the tests' own names, so it is the same in every
run: nobody is stopped by a test that was not played before.
"""

from __future__ import annotations

import hashlib
import math
from collections import defaultdict
from collections.abc import Collection, Iterable
from pathlib import Path

import pytest

MARK = "prove"
CALLED_BY_CONTROLS = {"turns_red", "breaks"}  # of races
DEAR = frozenset(  # without their parameters, or with [postgres] alone: on SQLite it is cheap, and played
    line
    for line in Path(__file__).with_name("dear.txt").read_text("utf-8").splitlines()
    if line and not line.startswith(("#", "+"))
)
# A family is a test without these words in its brackets.
ENGINES_AND_MODES = {"sqlite", "lite", "postgres", "pg", "plain", "held", "truncate", "wal"}
DRIVERS = {"psycopg", "psycopg2", "asyncpg", "sqlite3", "aiosqlite"}
DRIVERS |= {f"postgresql+{each}" for each in DRIVERS} | {"sqlite+aiosqlite"}  # below SQLAlchemy
STORES = {"folder", "s3"}  # of large payloads
KINDS = DRIVERS | {"async", "autocommit", "connection", "immediate", "pool", "session"}
# Of each family so much is played; the first folder that fits counts. What speaks SQL is played on both engines.
SHARES = (
    ("tests/core/store/", 1.0),
    ("tests/db/", 1.0),
    ("tests/proof/race/", 1 / 3),
    ("tests/proof/check/", 1 / 24),
    ("tests/proof/crash/", 1 / 24),
    ("tests/proof/history/test_seeded.py", 1 / 4),
    ("tests/cli/test_schema.py::test_a_worker_can_work_with_what_it_was_granted", 1 / 4),
    ("tests/core/worker/test_damaged.py", 1 / 4),
    ("tests/core/worker/test_lost_replies.py", 1 / 8),
    ("tests/core/worker/test_strikes.py", 1 / 8),
    ("tests/demo/test_fields.py", 1 / 3),
    ("tests/payloads/", 1 / 4),
    ("tests/planning/", 1 / 3),
    ("tests/processes/test_escapes.py", 1 / 4),
    ("tests/testing/test_as_a_worker.py", 1 / 12),
    ("tests/web/reading/test_strict.py::test_a_bomb", 1 / 4),
    ("tests/whole/guide/test_safe_handlers.py", 1 / 6),
    ("tests/", 1 / 2),
)
SHARE_OF_KINDS = 1 / 12  # of connection: all of them are of six drivers
# These are drawn on PostgreSQL one time in eight, not two: there a test costs three times as much. The first have no
# SQL of their own. What the others write, races and crashes play on PostgreSQL as well, and both engines are asked
# whether they understand each statement (tests/core/store/test_understood.py).
WITHOUT_SQL = (
    "batches",
    "cli",
    "core/app",
    "core/client",
    "core/worker",
    "processes",
    "supervisor",
    "house",
    "testing",
    "web/discord",
    "web/gateway",
    "whole",
)
SQL_OF_RACES = (
    "events",
    "flows",
    "handovers",
    "output",
    "payloads",
    "relay",
    "saga",
    "schedules",
    "steps",
    "unique",
    "web/dashboard",
    "web/webhooks",
    "web/worked",
)
SELDOM_ON_POSTGRES = tuple(f"tests/{folder}/" for folder in (*WITHOUT_SQL, *SQL_OF_RACES))
POSTGRES = {"postgres", "pg"}
# Here the cases of a test are points of one way, much like one another: they are one family.
POINTS = (
    "tests/cli/test_schema.py::test_a_worker_can_work_with_what_it_was_granted",
    "tests/core/worker/test_damaged.py",
    "tests/core/worker/test_lost_replies.py",
    "tests/core/worker/test_strikes.py",
    "tests/demo/test_fields.py",
    "tests/planning/test_beside.py",
    "tests/planning/test_report.py",
    "tests/processes/test_escapes.py",
    "tests/proof/check/",
    "tests/proof/crash/",
    "tests/proof/history/test_seeded.py",
    "tests/testing/test_as_a_worker.py",
    "tests/web/dashboard/test_bulk.py",
    "tests/web/reading/test_strict.py::test_a_bomb",
    "tests/web/webhooks/test_killed.py",
    "tests/whole/guide/test_safe_handlers.py",
)
left_out = pytest.StashKey[int]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--all", action="store_true", help="play also what the gate leaves out (tests/kit/part.py)"
    )


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--all"):
        return
    short = [item.nodeid for item in items if not is_long(item)]
    kept = part_of(short) | set(config.args)  # whoever names a test wants that one
    without = [item for item in items if item.nodeid not in kept]
    config.hook.pytest_deselected(items=without)
    items[:] = [item for item in items if item.nodeid in kept]
    config.stash[left_out] = len(without)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if not config.getoption("--all"):
        count = config.stash.get(left_out, None)
        some = "some" if count is None else f"{count:,}"  # with several processes it is they who collect
        terminalreporter.write_line(f"left out: {some} tests that only `--all` plays (tests/kit/part.py)")


def is_long(item: pytest.Item) -> bool:
    """Whether it is a campaign or a control, or dear for what it shows."""
    if item.get_closest_marker(MARK) is not None or is_dear(item.nodeid):
        return True
    called = set(item.function.__code__.co_names) if isinstance(item, pytest.Function) else set[str]()
    return not called.isdisjoint(CALLED_BY_CONTROLS)


def is_dear(test: str) -> bool:
    name, _, words = test.partition("[")
    return name in DEAR or (f"{name}[postgres]" in DEAR and not POSTGRES.isdisjoint(parts(words)))


def part_of(tests: Iterable[str]) -> set[str]:
    """The names of those that are played."""
    families: dict[str, list[str]] = defaultdict(list)
    for test in tests:
        families[family(test)].append(test)
    return {test for members in families.values() for test in some_of(members)}


def some_of(members: Collection[str]) -> list[str]:
    count = math.ceil(min(map(share, members)) * len(members))
    return sorted(members, key=lot)[:count]


def lot(test: str) -> float:
    """Drawn by its name, between 0 and 1, or 4 for what is to be played less often. The lowest are played."""
    drawn = int.from_bytes(hashlib.sha256(test.encode()).digest()[:8], "big") / 2**64
    name, _, words = test.partition("[")
    dear = name.startswith(SELDOM_ON_POSTGRES) and POSTGRES & set(parts(words))
    return 4 * drawn if dear else drawn


def family(test: str) -> str:
    name, _, words = test.partition("[")
    if name.startswith(POINTS):
        return name
    told_apart = ENGINES_AND_MODES | STORES | (KINDS if DRIVERS & set(parts(words)) else set())
    return f"{name}[{'-'.join(word for word in parts(words) if word not in told_apart)}"


def share(test: str) -> float:
    name, _, words = test.partition("[")
    if DRIVERS & set(parts(words)):
        return SHARE_OF_KINDS
    return next(found for folder, found in SHARES if name.startswith(folder))


def parts(words: str) -> list[str]:
    return words.rstrip("]").split("-")
