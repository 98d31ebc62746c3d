"""A user's own table: its names checked and quoted, and the statements that replace the rows of one source."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from fencerow.core.errors import InvalidInput
from fencerow.db.queries import Queries, Query
from fencerow.db.run import Steps, execute, execute_composed, text_or_none
from fencerow.guards.names import plain_name, quoted, table_name
from fencerow.guards.once.errors import OnceMisuse, UnusableTable

ROWS_MAX = 500  # in one INSERT
PARAMS_MAX = 2000
WHOLE_NUMBERS = ("smallint", "integer", "bigint")


@dataclass(frozen=True, slots=True)
class KnownTable:
    """What the catalogue says of a user's table: its one spelling, its columns, and the type of the source column.

    The spelling is without the schema where the name alone leads there. A SQLite file has no types to speak of.
    """

    spelling: str
    columns: frozenset[str]
    source_type: str | None

    def spelled(self, source: object) -> str:
        """The source as the column would give it back: one source has one text, whoever names it.

        Raises:
            InvalidInput: the column cannot hold it.
        """
        text = str(source)
        try:
            if self.source_type == "uuid":
                return str(UUID(text))
            if self.source_type in WHOLE_NUMBERS:
                return str(int(text))
        except ValueError:
            raise InvalidInput(
                f"the source {ascii(text)[:80]} does not fit into its column",
                f"{self.spelling} has a column of type {self.source_type} for it",
                "pass the value that the source column has",
            ) from None
        return text


@dataclass(frozen=True, slots=True)
class UserTable:
    """A table and the column that says which source a row belongs to.

    `source_type` is that column's type once the catalogue was asked: the source goes to the server as text, and the
    column decides what it is, whichever driver sends it.
    """

    name: str
    source_column: str
    source_type: str | None = None

    def __post_init__(self) -> None:
        table_name(self.name)
        plain_name(self.source_column, "the source column")

    @property
    def quoted(self) -> str:
        return table_name(self.name).quoted

    def columns(self, dialect: str) -> Steps[frozenset[str]]:
        """The names of its columns, see `known`."""
        return (yield from self.known(dialect)).columns

    def known(self, dialect: str) -> Steps[KnownTable]:
        """What the catalogue says of it.

        Raises:
            UnusableTable: there is no such table, or it lacks the source column.
        """
        known = yield from self.looked_up(dialect)
        if known is None:
            raise UnusableTable(
                f"there is no table {self.name!r} that this connection can see",
                "names are case-sensitive: write them as they were created",
                "create it, or name its schema: schema.table",
            )
        if self.source_column not in known.columns:
            raise self.lacks(self.source_column, sorted(known.columns))
        return known

    def looked_up(self, dialect: str) -> Steps[KnownTable | None]:
        """What the catalogue says of it, or None when there is no such table."""
        target = self.quoted if dialect == "postgres" else self.name.rpartition(".")[2]
        rows = yield from execute("columns_of_users_table", target=target)
        types = {str(name): text_or_none(kind) for name, kind, _ in rows}
        if not rows:
            return None
        return KnownTable(str(rows[0][2]), frozenset(types), types.get(self.source_column))

    def lacks(self, column: str, found: Sequence[str]) -> UnusableTable:
        """It has no such column."""
        return UnusableTable(
            f"table {self.name!r} has no column {column!r}",
            f"it has {', '.join(found[:20])}",
            "name a column that it has",
        )

    def removal(self, queries: Queries) -> Query:
        """The statement that removes all rows of a source."""
        text = f"DELETE FROM {self.quoted} WHERE {quoted(self.source_column)} = {self._sent('source')}"  # noqa: S608 (checked names)
        return queries.composed("remove_rows_of_source", text)

    def insertion(self, queries: Queries, columns: Sequence[str], rows: int) -> Query:
        """The statement that inserts so many rows; its parameters are v0_0, v0_1 and so on."""
        names = ", ".join(map(quoted, columns))
        values = ", ".join(
            "("
            + ", ".join(
                self._sent(f"v{row}_{column}") if name == self.source_column else f":v{row}_{column}"
                for column, name in enumerate(columns)
            )
            + ")"
            for row in range(rows)
        )
        text = f"INSERT INTO {self.quoted} ({names}) VALUES {values}"  # noqa: S608 (checked names)
        return queries.composed("insert_rows_of_source", text)

    def replaced(self, queries: Queries, source: object, rows: Rows) -> Steps[None]:
        """Remove what there is of a source and insert its rows: part of a transaction that has its lock."""
        yield from execute_composed(self.removal(queries), {"source": source})
        known: dict[int, Query] = {}
        for batch in rows.batches():
            query = known.get(len(batch)) or self.insertion(queries, rows.columns, len(batch))
            known[len(batch)] = query
            values = {
                f"v{row}_{column}": value
                for row, each in enumerate(batch)
                for column, value in enumerate(each)
            }
            yield from execute_composed(query, values)

    def _sent(self, parameter: str) -> str:
        """How a statement writes the source."""
        if self.source_type is None:
            return f":{parameter}"
        return f"CAST(CAST(:{parameter} AS text) AS {self.source_type})"


@dataclass(frozen=True, slots=True)
class Rows:
    """The new rows of a source, all with the same columns."""

    columns: tuple[str, ...]
    values: tuple[tuple[Any, ...], ...]

    @staticmethod
    def of(
        table: UserTable, source: object, rows: Sequence[Mapping[str, Any]], known: frozenset[str]
    ) -> Rows:
        """Check what was given; the source column is filled in where it is missing.

        Raises:
            OnceMisuse: the rows have different columns, or belong to another source.
            UnusableTable: the table lacks a column of theirs.
        """
        columns = tuple(dict.fromkeys([table.source_column, *(rows[0] if rows else ())]))
        for column in columns:
            plain_name(column, "a column")
            if known and column not in known:
                raise table.lacks(column, sorted(known))
        expected = set(columns)
        for number, row in enumerate(rows):
            if set(row) | {table.source_column} != expected:
                different = sorted(set(row) ^ expected - {table.source_column})
                raise OnceMisuse(
                    f"row {number} has other columns than row 0: {', '.join(different)}",
                    "all rows of a source are inserted by one statement",
                    "give every row the same columns, None where there is nothing",
                )
            if str(row.get(table.source_column, source)) != str(source):
                raise OnceMisuse(
                    f"row {number} belongs to source {row[table.source_column]!r}",
                    f"the rows of {source!r} are being replaced",
                    f"leave {table.source_column!r} out; it is filled in",
                )
        filled = [{**row, table.source_column: source} for row in rows]
        return Rows(columns, tuple(tuple(row[column] for column in columns) for row in filled))

    def batches(self) -> Iterator[tuple[tuple[Any, ...], ...]]:
        """So many at a time as one statement takes."""
        size = min(ROWS_MAX, PARAMS_MAX // max(1, len(self.columns))) or 1
        for start in range(0, len(self.values), size):
            yield self.values[start : start + size]
