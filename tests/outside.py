"""The mark `outside`: tests that need a program which no Python package brings, which is PgBouncer.

Where it is missing they are left out, and one line at the end says so; with `--outside demanded` they fail there.
"""

from __future__ import annotations

import pytest

from fencerow.testing.pg_binaries import BinariesMissing
from fencerow_proof.servers.pgbouncer import find_pgbouncer

MARK = "outside"
left_out = pytest.StashKey[int]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--outside",
        choices=("if there", "demanded"),
        default="if there",
        help="tests that need PgBouncer: left out where it is missing, or failing",
    )


@pytest.hookimpl(trylast=True)  # after -m and -k have chosen
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    config.stash[left_out] = 0
    if config.getoption("--outside") == "demanded" or _is_there():
        return
    needing = [item for item in items if item.get_closest_marker(MARK)]
    if needing:
        config.hook.pytest_deselected(items=needing)
        items[:] = [item for item in items if not item.get_closest_marker(MARK)]
    config.stash[left_out] = len(needing)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    # The processes of xdist collect, and this one does not: it says what they would.
    count = config.stash.get(left_out, 0)
    if count or (config.getoption("numprocesses", None) and not _is_there()):
        terminalreporter.write_line(
            f"left out: {count or 'the'} tests that need PgBouncer, which is not installed "
            "(Debian, Ubuntu: apt-get install pgbouncer)"
        )


def _is_there() -> bool:
    try:
        find_pgbouncer()
    except BinariesMissing:
        return False
    return True
