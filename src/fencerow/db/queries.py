"""Loads the named queries of a dialect: `-- name: claim`, prose, then the SQL with `:name` parameters.

A query may consist of several statements separated by `;` where the dialect cannot say it in one
(SQLite has no data-modifying CTE): they run in order inside one transaction, and the rows are those
that any of them returned. Tables are written `fencerow.jobs`; another schema or a table prefix is a
quoted rename at load. Parameters are translated once, here.

What stands in the files of a package, fragments and points among it: fencerow.db.query_files.

A utility statement takes no parameters. What varies in one is written into its text, as psql does it:
`:"name"` for an identifier and `:'name'` for a literal.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from types import MappingProxyType
from typing import Protocol

from fencerow.db.errors import ConfigError
from fencerow.db.migration import migrations
from fencerow.db.query_files import NOTHING, texts

IDENTIFIER = re.compile(r"^[a-z_][a-z0-9_]{0,48}$")
WRITTEN = re.compile(r""":'([a-z_]+)'|:"([a-z_]+)"|'(?:[^']|'')*'""")
COPY = re.compile(r"COPY\b.*\bFROM STDIN$", re.DOTALL)
PIECE = re.compile(r"'(?:[^']|'')*'|--[^\n]*|\$\$.*?\$\$|;", re.DOTALL)
# Strings and comments are matched first so that a colon inside them is left alone.
TOKEN = re.compile(r"'(?:[^']|'')*'|--[^\n]*|(?<![:\w]):([a-z_][a-z0-9_]*)|fencerow\.([a-z_]+)", re.DOTALL)

Values = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class Query:
    """One named query: its statements as written, and the parameters that it takes in order of first use.

    `users`: it was composed for a user's own table. Its parameters go to the driver as they are, so that the
    column decides about their types; its values come back as the driver gives them, after a first row with
    the names of the columns, see `with_names`. `copies`: it is a COPY FROM STDIN, which is fed the parameter
    `lines`. `spells`: values are written into its text, see `written`.
    """

    name: str
    statements: tuple[str, ...]
    parameters: tuple[str, ...]
    users: bool = False
    copies: bool = False
    spells: bool = False

    def altered(self, old: str, new: str) -> Query:
        """A copy with `old` replaced by `new`: how a test takes a guard out to see its test turn red."""
        changed = tuple(text.replace(old, new) for text in self.statements)
        if changed == self.statements:
            raise ValueError(f"query {self.name!r} does not contain {old!r}")
        return replace(self, statements=changed, parameters=_parameters(changed))

    def with_names(self, names: Sequence[str], rows: Sequence[Values]) -> list[Values]:
        """The rows as a runner hands them on: after the names of their columns if the query is a user's."""
        return [tuple(names), *rows] if self.users and rows else list(rows)


class AskedQuery(Protocol):
    """What is to be run: a query of ours by its name, or one that it brings along."""

    @property
    def name(self) -> str: ...

    @property
    def query(self) -> Query | None: ...


class Queries(Mapping[str, Query]):
    """The named queries of one dialect, for one schema or table prefix.

    `unread` are texts of further ones, each read when it is first asked for: a process needs few of several hundred.
    """

    def __init__(
        self,
        dialect: str,
        queries: Mapping[str, Query],
        rename: Callable[[str], str] | None = None,
        unread: Mapping[str, str] | None = None,
    ) -> None:
        self.dialect = dialect
        self._read = dict(queries)
        self._unread = MappingProxyType(dict(unread or {}))
        self._rename = rename
        self._names = tuple(dict.fromkeys((*self._unread, *self._read)))

    def of(self, statement: AskedQuery) -> Query:
        """The query that a statement runs: its own if it brings one, else the one of its name."""
        return statement.query or self._read.get(statement.name) or self[statement.name]

    def name_of(self, table: str) -> str:
        """A table of ours as statements of this dialect write it."""
        return self._renaming(table)

    def composed(self, name: str, text: str) -> Query:
        """A query for a user's own table, made from their declaration; `fencerow.x` in it is renamed as in ours."""
        return replace(_query(name, text, self._renaming), users=True)

    @property
    def _renaming(self) -> Callable[[str], str]:
        if self._rename is None:
            raise ValueError("these queries were not loaded from files, so their schema is not known")
        return self._rename

    def __getitem__(self, name: str) -> Query:
        found = self._read.get(name)
        if found is None:
            # Two threads may both read it: what they find is the same.
            found = self._read[name] = _query(name, self._unread[name], self._renaming)
        return found

    def __contains__(self, name: object) -> bool:
        return name in self._read or name in self._unread

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def joined(self, others: Queries) -> Queries:
        """These queries and `others`, which may replace some."""
        kept = {name: query for name, query in self._read.items() if name not in others}
        # Texts of another schema are read now: what is unread is renamed as ours are.
        alike = others._rename is self._rename
        more = others._read if alike else dict(others)
        return Queries(
            self.dialect,
            {**kept, **more},
            self._rename,
            {**self._unread, **(others._unread if alike else {})},
        )

    def altered(self, name: str, old: str, new: str) -> Queries:
        """A copy with `old` replaced by `new` in one query, see `Query.altered`."""
        return self.joined(Queries(self.dialect, {name: self[name].altered(old, new)}))


def load(
    package: str,
    folder: str,
    dialect: str,
    rename: Callable[[str], str],
    given: Mapping[str, str] = NOTHING,
) -> Queries:
    """Read every `*.sql` of a package folder; `rename` maps a bare table or function name to a qualified one.

    `given`: fragments that stand in no file of it.
    """
    found = texts(package, folder, given)
    for migration in migrations(package, folder):
        for number, part in enumerate(migration.parts):
            found[migration.part(number)] = part.text
    return Queries(dialect, {}, rename, found)


def identifier(name: str, what: str) -> str:
    """Accept a schema name or table prefix, or say what is wrong with it."""
    if not IDENTIFIER.fullmatch(name):
        raise ConfigError(
            f"{what} {name!r} is not usable",
            "expected lower-case letters, digits and underscores, at most 49, not starting with a digit",
            "choose a plainer name",
        )
    return name


def postgres_names(schema: str) -> Callable[[str], str]:
    """How `fencerow.x` is written in PostgreSQL: a quoted schema, and `fencerow.own_schema` for the schema itself."""
    identifier(schema, "schema name")
    return lambda name: f'"{schema}"' if name == "own_schema" else f'"{schema}".{name}'


def sqlite_names(prefix: str) -> Callable[[str], str]:
    """How `fencerow.x` is written in a SQLite file: a prefix, and the attached file for the workers."""
    identifier(prefix, "table prefix")

    def rename(name: str) -> str:
        return f"{prefix}file.{prefix}workers" if name == "workers" else f"{prefix}{name}"

    return rename


def qualified(text: str, rename: Callable[[str], str]) -> str:
    """`text` with every `fencerow.x` renamed."""
    return TOKEN.sub(lambda match: rename(match.group(2)) if match.group(2) else match.group(0), text)


def translated(text: str, write: Callable[[str], str]) -> str:
    """`text` with every `:name` parameter written in a driver's own style."""
    return TOKEN.sub(lambda match: write(match.group(1)) if match.group(1) else match.group(0), text)


def split(text: str) -> tuple[str, ...]:
    """The statements of a script, without comments."""
    parts, start = [""], 0
    for match in PIECE.finditer(text):
        parts[-1] += text[start : match.start()]
        start = match.end()
        if match.group(0) == ";":
            parts.append("")
        elif not match.group(0).startswith("--"):
            parts[-1] += match.group(0)
    parts[-1] += text[start:]
    return tuple(part.strip() for part in parts if part.strip())


def written(text: str, params: Mapping[str, object]) -> str:
    """`text` with every `:"name"` and `:'name'` written out. Only plain names and whole numbers are let in.

    Raises:
        ConfigError: a value is neither. It is ours, never a user's; a mistake here must not become SQL.
    """

    if ":'" not in text and ':"' not in text:
        return text  # nearly all: looking through each of their strings would cost more than sending them

    def write(match: re.Match[str]) -> str:
        if match.group(1):
            return f"'{int(str(params[match.group(1)]))}'"
        if match.group(2):
            return f'"{identifier(str(params[match.group(2)]), "a name in a statement")}"'
        return match.group(0)

    return WRITTEN.sub(write, text)


def _query(name: str, text: str, rename: Callable[[str], str]) -> Query:
    statements = split(qualified(text, rename))
    return Query(
        name,
        statements,
        _parameters(statements),
        copies=any(map(COPY.match, statements)),
        spells=any(
            match.group(1) or match.group(2) for text in statements for match in WRITTEN.finditer(text)
        ),
    )


def _parameters(statements: Iterable[str]) -> tuple[str, ...]:
    names = (match.group(1) for text in statements for match in TOKEN.finditer(text))
    return tuple(dict.fromkeys(name for name in names if name))


@lru_cache(maxsize=4096)
def pyformat(text: str) -> str:
    """psycopg's style: `%(name)s`, with literal percent signs doubled."""
    return translated(text.replace("%", "%%"), lambda name: f"%({name})s")


@lru_cache(maxsize=4096)
def numbered(text: str, parameters: tuple[str, ...]) -> str:
    """asyncpg's style: `$1`, numbered in the order of `parameters`."""
    return translated(text, lambda name: f"${parameters.index(name) + 1}")
