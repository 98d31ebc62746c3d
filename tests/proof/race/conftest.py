"""Arenas for the races, and the table of what was explored."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pytest

from fencerow.core.store import store
from fencerow.db.queries import Queries, postgres_names, qualified, sqlite_names
from fencerow.testing.postgres import PostgresServer
from fencerow_proof.arena.postgres import PostgresArena
from fencerow_proof.arena.race import Report, Scenario, explore
from fencerow_proof.arena.sqlite import SqliteArena
from fencerow_proof.explorer.violation import Violation
from tests.kit.databases import copy_files, scratch_folder
from tests.kit.servers import ROLE, TEMPLATE, MigratedServer
from tests.proof.race.named import WHOLE

ALL = 1_000_000  # orders: no race has so many that are told apart
RED_WITHIN = 300  # orders: a control ends with the first that is wrong, so it may look further than a race
FEWEST = 3  # orders, however long they are
STARRED = 24  # orders at most of a race with a star, where not all are asked for
MODES = ("plain", "held", "sqlite")


def in_modes(*modes: str) -> pytest.MarkDecorator:
    """Where a story makes sense: whole transactions on SQLite never wait for each other's rows."""
    return pytest.mark.parametrize("race", modes, indirect=True)


@pytest.fixture(scope="session")
def race_server() -> Iterator[PostgresServer]:
    with MigratedServer(fast=True) as server:
        yield server


@dataclass(frozen=True)
class Cut:
    """A guard taken out of one query: what is replaced by what, in each dialect where there is something to cut.

    Tables and functions are written `fencerow.x`, as in the files.
    """

    query: str
    postgres: tuple[str, str] | None = None
    sqlite: tuple[str, str] | None = None

    def in_mode(self, mode: str) -> tuple[str, str] | None:
        return self.sqlite if mode == "sqlite" else self.postgres


@dataclass(frozen=True)
class Asked:
    """What a test wants of the explorer: at most so many orders, or all of them; and which races it plays."""

    orders: int
    long: bool
    all: bool
    test: str
    named: tuple[int, ...]

    @classmethod
    def by(cls, request: pytest.FixtureRequest) -> Asked:
        mark = request.node.get_closest_marker("named")
        option = request.config.getoption
        numbers = () if mark is None else tuple(mark.args)
        return cls(option("--orders"), option("--long"), option("--all"), request.function.__name__, numbers)

    @property
    def facts(self) -> dict[str, Any]:
        return {"test": self.test, "named": self.named}

    def has_star(self, mode: str) -> bool:
        """Whether many orders are played, or all."""
        return not WHOLE.isdisjoint(self.named) and (self.long or mode != "held")

    def wants_all(self, mode: str) -> bool:
        """Whether a sample is not enough."""
        return self.has_star(mode) and (self.long or self.all)


class Race:
    """Explores scenarios in one mode and notes what it did for the table."""

    def __init__(self, arena: PostgresArena | SqliteArena, asked: Asked, note: Any) -> None:
        self.mode = arena.mode
        self._arena = arena
        self._queries: Queries = arena.queries
        self._rename = sqlite_names("fencerow_") if arena.mode == "sqlite" else postgres_names("fencerow")
        self._asked = asked
        self._limit = asked.orders
        self._note = note

    def __call__(self, scenario: Scenario, *, share: float = 1.0) -> Report:
        """Every order holds; `share`: of the orders that are played of one race, where its are long."""
        self._arena.queries = self._queries
        whole = self._asked.wants_all(self.mode)
        few = STARRED if self._asked.has_star(self.mode) else FEWEST
        limit = ALL if whole else max(few, round(share * self._limit))
        report = explore(self._arena, scenario, limit=limit)
        assert report.played == report.total or not whole, f"{report.played} of about {report.total} orders"
        self._note("race", json.dumps({**asdict(report), **self._asked.facts}))
        return report

    def without(self, scenario: Scenario, *cuts: Cut) -> Report:
        """Every order holds even so: what this mode cannot see."""
        self._arena.queries, _ = self._altered(cuts)
        try:
            return explore(self._arena, scenario, limit=self._limit)
        finally:
            self._arena.queries = self._queries

    def turns_red(self, scenario: Scenario, *cuts: Cut) -> Violation:
        """Without the guards some order does not hold; a cut without a text for this dialect is none there."""
        return self._red(scenario, *self._altered(cuts))

    def breaks(self, scenario: Scenario, what: str) -> Violation:
        """Some order of a scenario whose script does it wrongly does not hold; `what` says how it is wrong."""
        return self._red(scenario, self._queries, [what])

    def _red(self, scenario: Scenario, queries: Queries, told: list[str]) -> Violation:
        self._arena.queries, started = queries, time.monotonic()
        try:
            with pytest.raises(Violation) as caught:
                explore(self._arena, scenario, limit=max(self._limit, RED_WITHIN))
        finally:
            self._arena.queries = self._queries
        facts = {"scenario": scenario.name, "mode": self.mode, "cuts": told, "order": caught.value.order}
        seconds = time.monotonic() - started
        self._note("control", json.dumps({**facts, "seconds": seconds, **self._asked.facts}))
        return caught.value

    def _altered(self, cuts: Sequence[Cut]) -> tuple[Queries, list[str]]:
        queries, told = self._queries, []
        for cut in cuts:
            change = cut.in_mode(self.mode)
            if change is not None:
                old, new = (qualified(text, self._rename) for text in change)
                queries = queries.altered(cut.query, old, new)
                told.append(f"{cut.query}: {' '.join(change[0].split())}")
        assert told, "nothing to cut in this mode: leave it out with in_modes"
        return queries, told


@pytest.fixture(scope="session")
def arenas(
    race_server: PostgresServer, _lite_template: Path
) -> Iterator[Mapping[str, PostgresArena | SqliteArena]]:
    made: dict[str, PostgresArena | SqliteArena] = {}
    for mode in ("plain", "held"):
        race_server.create_database(f"race_{mode}", template=TEMPLATE)
        url = race_server.conninfo(f"race_{mode}", ROLE)
        made[mode] = PostgresArena(url, store.postgres_queries(), held=mode == "held")
    with scratch_folder() as folder:
        copy_files(_lite_template, path := folder / "race.db")
        made["sqlite"] = SqliteArena(path, store.sqlite_queries())
        yield made
        for arena in made.values():
            arena.close()


@pytest.fixture(params=MODES)
def race(request: pytest.FixtureRequest, arenas: Mapping[str, Any], record_property: Any) -> Race:
    return Race(arenas[request.param], Asked.by(request), record_property)
