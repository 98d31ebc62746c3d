"""A user's own table: its names checked and quoted, and the statements that replace the rows of one source."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fencerow.db.queries import Queries, Query
from fencerow.db.statement import Steps, execute, execute_composed, first_column
from fencerow.errors import OnceMisuse, UnusableTable
from fencerow.primitives.names import plain_name, quoted, table_name

ROWS_MAX = 500  # in one INSERT
PARAMS_MAX = 2000


@dataclass(frozen=True, slots=True)
class UserTable:
    """A table and the column that says which source a row belongs to."""

    name: str
    source_column: str

    def __post_init__(self) -> None:
        table_name(self.name)
        plain_name(self.source_column, "the source column")

    @property
    def quoted(self) -> str:
        return table_name(self.name).quoted

    def columns(self, dialect: str) -> Steps[frozenset[str]]:
        """The names of its columns.

        Raises:
            UnusableTable: there is no such table, or it lacks the source column.
        """
        target = self.quoted if dialect == "postgres" else self.name.rpartition(".")[2]
        found = first_column((yield from execute("columns_of_users_table", target=target)))
        if not found:
            raise UnusableTable(
                f"there is no table {self.name!r} that this connection can see",
                "names count in upper and lower case as they were created",
                "create it, or name its schema: schema.table",
            )
        if self.source_column not in found:
            raise self.lacks(self.source_column, found)
        return frozenset(found)

    def lacks(self, column: str, found: Sequence[str]) -> UnusableTable:
        """It has no such column."""
        return UnusableTable(
            f"table {self.name!r} has no column {column!r}",
            f"it has {', '.join(found[:20])}",
            "name a column that it has",
        )

    def removal(self, queries: Queries) -> Query:
        """The statement that removes all rows of a source."""
        text = f"DELETE FROM {self.quoted} WHERE {quoted(self.source_column)} = :source"  # noqa: S608 (checked names)
        return queries.composed("remove_rows_of_source", text)

    def insertion(self, queries: Queries, columns: Sequence[str], rows: int) -> Query:
        """The statement that inserts so many rows; its parameters are v0_0, v0_1 and so on."""
        names = ", ".join(map(quoted, columns))
        values = ", ".join(
            "(" + ", ".join(f":v{row}_{column}" for column in range(len(columns))) + ")"
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
            if row.get(table.source_column, source) != source:
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
