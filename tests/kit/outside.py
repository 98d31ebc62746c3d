"""The mark `outside`: tests that need a program which no Python package brings, by the name of the program.

Where it is missing they are left out, and one line at the end says so; with `--outside demanded` they fail there.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from fencerow.testing.pg_binaries import BinariesMissing
from fencerow_proof.servers.pgbouncer import find_pgbouncer
from tests.models.spin import is_spin_there

MARK = "outside"


def is_pgbouncer_there() -> bool:
    try:
        find_pgbouncer()
    except BinariesMissing:
        return False
    return True


def is_systemd_there() -> bool:
    """Its verifier of units, which needs no running systemd."""
    return shutil.which("systemd-analyze") is not None


def is_prometheus_there() -> bool:
    return all(shutil.which(name) for name in ("prometheus", "promtool", "amtool"))


def is_redis_there() -> bool:
    return shutil.which("redis-server") is not None


@dataclass(frozen=True)
class Program:
    is_there: Callable[[], bool]
    what: str
    packages: str  # of Debian and Ubuntu


PROGRAMS = {
    "PgBouncer": Program(is_pgbouncer_there, "PgBouncer, which is", "pgbouncer"),
    "Prometheus": Program(
        is_prometheus_there,
        "Prometheus and its Alertmanager with their tools, which are",
        "prometheus prometheus-alertmanager",
    ),
    "Redis": Program(is_redis_there, "the Redis server, which is", "redis-server"),
    "Spin": Program(is_spin_there, "Spin and a C compiler, which are", "spin gcc libc6-dev"),
    "systemd": Program(is_systemd_there, "systemd-analyze, which is", "systemd"),
}
left_out = pytest.StashKey[dict[str, int]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--outside",
        choices=("if there", "demanded"),
        default="if there",
        help="tests that want PgBouncer, Prometheus, Redis, Spin or systemd: left out where it is missing, or failing",
    )


@pytest.hookimpl(trylast=True)  # after -m and -k have chosen
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    missing = missing_programs(config)
    without = {item: name for item in items if (name := needed(item)) in missing}
    if without:
        config.hook.pytest_deselected(items=list(without))
        items[:] = [item for item in items if item not in without]
    config.stash[left_out] = {name: list(without.values()).count(name) for name in missing}


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    # The processes of xdist collect, and this one does not: it says what they would.
    spread = bool(config.getoption("numprocesses", None))
    counts = config.stash.get(left_out, None) or dict.fromkeys(missing_programs(config), 0)
    for name, count in counts.items():
        if count or spread:
            program = PROGRAMS[name]
            terminalreporter.write_line(
                f"left out: {count or 'the'} tests that need {program.what} not installed "
                f"(Debian, Ubuntu: apt-get install {program.packages})"
            )


def needed(item: pytest.Item) -> str | None:
    """The program that a test needs, if it needs one."""
    mark = item.get_closest_marker(MARK)
    return None if mark is None else str(mark.args[0])


def missing_programs(config: pytest.Config) -> list[str]:
    """The programs without which tests are left out."""
    if config.getoption("--outside") == "demanded":
        return []
    return [name for name, program in PROGRAMS.items() if not program.is_there()]
