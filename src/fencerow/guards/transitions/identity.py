"""Whether the database keeps the id of a user's table unique: a move is for one row, and names it by its id alone."""

from __future__ import annotations

from fencerow.db.queries import Queries
from fencerow.db.run import Steps, execute_composed
from fencerow.guards.names import TableName, literal
from fencerow.guards.transitions.errors import WrongTable

# Whole and valid indexes on one column and no expression. A table with heirs may have the id of one of theirs.
POSTGRES = """
SELECT attribute.attname AS name
FROM pg_catalog.pg_index AS found
JOIN pg_catalog.pg_class AS relation ON relation.oid = found.indrelid
JOIN pg_catalog.pg_attribute AS attribute
  ON attribute.attrelid = found.indrelid AND attribute.attnum = found.indkey[0]
WHERE found.indrelid = to_regclass({quoted})
  AND found.indisunique AND found.indisvalid AND found.indnkeyatts = 1 AND found.indpred IS NULL
  AND (relation.relkind = 'p'
       OR NOT EXISTS (SELECT 1 FROM pg_catalog.pg_inherits AS heir WHERE heir.inhparent = relation.oid))
"""
SQLITE = """
SELECT max(of.name) AS name
FROM pragma_index_list({name}{schema}) AS found, pragma_index_info(found.name{schema}) AS of
WHERE found."unique" AND NOT found.partial
GROUP BY found.name
HAVING count(*) = 1
UNION ALL
SELECT max(name) FROM pragma_table_info({name}{schema}) WHERE pk > 0 HAVING count(*) = 1
"""


def check_unique(table: TableName, column: str, queries: Queries) -> Steps[None]:
    """See that no two rows can have one id.

    Raises:
        WrongTable: the database does not say so.
    """
    query = queries.composed("unique_columns_of_table", _text(table, queries.dialect))
    rows = yield from execute_composed(query, {})
    if column not in {row["name"] for row in rows}:
        raise WrongTable(
            f"column {column!r} of table {table} is not unique by itself",
            "it has no primary key or unique index on it alone, so a move would change every row with that id",
            f"add a unique index on {column!r} alone, or name another column as id=",
        )


def _text(table: TableName, dialect: str) -> str:
    if dialect == "postgres":
        return POSTGRES.format(quoted=literal(table.quoted))
    schema = f", {literal(table.schema)}" if table.schema else ""
    return SQLITE.format(name=literal(table.name), schema=schema)
