"""The end state of a run, as it is compared: the user's rows as multisets, and what was submitted."""

from __future__ import annotations

import json
import re
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Protocol

MARGIN_S = 2.0
NOW = "<now>"
LOOKS_LIKE_TIME = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d")
# What is compared like a table of this name, beside the user's own.
SUBMITTED = "jobs submitted"
PUBLISHED = "events published"
RESULT = "the job's result"
KEYS = "keys of once"
WINDOWS = "dedupe windows"
MUTEXES = "mutexes that are held"
SHOWN_MAX = 3


@dataclass(frozen=True)
class Shape:
    """What the catalog says of a table: `made` are columns that the database numbers, `refers` foreign keys.

    `free` are columns with values of the handler's own, such as a result: a number in one may be one that was made.
    """

    columns: tuple[str, ...]
    made: frozenset[str] = frozenset()
    refers: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    free: frozenset[str] = frozenset()


# What is ours and yet compared, each with what is looked at of it.
OURS = {
    SUBMITTED: Shape(("name", "queue", "args", "key")),
    PUBLISHED: Shape(("topic", "key", "data"), free=frozenset(("data",))),
    KEYS: Shape(("scope", "key", "done", "result"), free=frozenset(("result",))),
    WINDOWS: Shape(("name", "key", "value"), free=frozenset(("value",))),
    MUTEXES: Shape(("key",)),
}


@dataclass(frozen=True)
class State:
    """The rows of each table, and what is known of it."""

    tables: Mapping[str, list[dict[str, Any]]]
    shapes: Mapping[str, Shape]


@dataclass(frozen=True)
class Difference:
    """What one table holds too much or too little, as rows on one line."""

    table: str
    extra: tuple[str, ...]
    missing: tuple[str, ...]

    def lines(self) -> list[str]:
        """For people: at most some rows of each."""
        return [*_some("too much", self.extra), *_some("missing", self.missing)]


class Reader(Protocol):
    """Looks at the copy."""

    def state(self, checked: Sequence[str]) -> State:
        """All tables of the user, what is ours and compared, and the results of the `checked` jobs."""
        ...

    def rows(self, table: str) -> list[str]:
        """What others see of one table at this moment."""
        ...


class Comparison:
    """Says how an end state differs from the one after a single clean run.

    Not compared: the columns that the user declared, those that differ between two clean runs, moments of the
    check itself, and numbers that the database gives, where the rest of the rows is the same.
    """

    def __init__(self, ignored: Iterable[str]) -> None:
        self._ignored = set(ignored)
        self.unsteady: set[str] = set()  # table.column that differ between clean runs
        self.passed_s = 0.0  # by how much the copy's clock was ever moved ahead
        self._since = time.time() - MARGIN_S

    def learn(self, one: State, other: State) -> None:
        """These two came about in the same way: where they differ nothing can be said."""
        for table in set(one.tables) & set(other.tables):
            if len(one.tables[table]) != len(other.tables[table]):
                continue
            for column in set(one.shapes[table].columns) & set(other.shapes[table].columns):
                if self._values(one, table, column) != self._values(other, table, column):
                    self.unsteady.add(f"{table}.{column}")

    def differences(self, wanted: State, found: State) -> list[Difference]:
        """What is different in `found`; nothing when they are the same."""
        differing = []
        for table in sorted(set(wanted.tables) | set(found.tables)):
            strict = [self._rows(each, table, by_number=True) for each in (wanted, found)]
            if strict[0] == strict[1]:
                continue
            first, second = (self._rows(each, table, by_number=False) for each in (wanted, found))
            if first != second:
                extra, missing = tuple((second - first).elements()), tuple((first - second).elements())
                differing.append(Difference(table, extra, missing))
        return differing

    def _values(self, state: State, table: str, column: str) -> Counter[str]:
        return Counter(_text(self._plain(row[column])) for row in state.tables[table])

    def _rows(self, state: State, table: str, *, by_number: bool) -> Counter[str]:
        shape = state.shapes.get(table)
        if shape is None:
            return Counter()
        return Counter(self._row(state, table, row, by_number, ()) for row in state.tables[table])

    def _row(
        self, state: State, table: str, row: dict[str, Any], by_number: bool, above: tuple[str, ...]
    ) -> str:
        shape = state.shapes[table]
        shown = {}
        for column in shape.columns:
            name = f"{table}.{column}"
            if name in self._ignored or name in self.unsteady or f"{table}.*" in self._ignored:
                continue
            if not by_number and column in shape.made:
                continue
            value = row[column]
            if not by_number and column in shape.refers:
                value = self._referred(state, *shape.refers[column], value, (*above, table))
            if not by_number and column in shape.free:
                value = self._without_numbers(state, value)
            shown[column] = self._plain(value)
        return _text(shown)

    def _referred(self, state: State, table: str, column: str, value: Any, above: tuple[str, ...]) -> Any:
        """A number that another table's row has been given stands for what that row holds."""
        shape = state.shapes.get(table)
        if value is None or shape is None or column not in shape.made or table in above:
            return value
        for row in state.tables[table]:
            if row[column] == value:
                return self._row(state, table, row, by_number=False, above=above)
        return value

    def _without_numbers(self, state: State, value: Any) -> Any:
        """A value of the handler's own, with each number that the database gave as what the row with it holds."""
        if isinstance(value, dict):
            return {name: self._without_numbers(state, each) for name, each in value.items()}
        if isinstance(value, list):
            return [self._without_numbers(state, each) for each in value]
        if isinstance(value, bool) or not isinstance(value, int | str):
            return value
        found = [
            self._row(state, table, row, by_number=False, above=())
            for table, shape in state.shapes.items()
            for column in shape.made
            for row in state.tables.get(table, ())
            if str(row[column]) == str(value)
        ]
        return sorted(found) or value

    def _plain(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {name: self._plain(each) for name, each in value.items()}
        if isinstance(value, list):
            return [self._plain(each) for each in value]
        return NOW if self._is_recent(value) else value

    def _is_recent(self, value: Any) -> bool:
        since, until = self._since, time.time() + self.passed_s + MARGIN_S
        if isinstance(value, int | float) and not isinstance(value, bool):
            return any(since * unit <= value <= until * unit for unit in (1, 1e3, 1e6))
        if isinstance(value, str) and LOOKS_LIKE_TIME.match(value):
            try:
                moment = datetime.fromisoformat(value)
            except ValueError:
                return False
            zones = [moment] if moment.tzinfo else [moment.replace(tzinfo=UTC), moment.astimezone()]
            return any(since - 1 <= each.timestamp() <= until for each in zones)
        return False


def result_rows(found: Iterable[tuple[Any, Any]]) -> tuple[list[dict[str, Any]], Shape]:
    """The results of jobs as rows, the parts of an object as columns, so that each is compared by itself."""
    rows = []
    for job, text in found:
        value = json.loads(text) if isinstance(text, str | bytes) else text
        parts = value if isinstance(value, dict) else {"result": value}
        rows.append({"job": str(job)} | {str(name): part for name, part in parts.items()})
    columns = tuple(sorted({name for row in rows for name in row}))
    whole = [{name: row.get(name) for name in columns} for row in rows]
    return whole, Shape(columns, free=frozenset(columns))


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True, default=repr)


def _some(what: str, rows: Sequence[str]) -> list[str]:
    shown = [f"{what}: {row}" for row in rows[:SHOWN_MAX]]
    return shown if len(rows) <= SHOWN_MAX else [*shown, f"{what}: and {len(rows) - SHOWN_MAX} more rows"]
