"""What a statement is and which tables it touches, read from its text: rather too much than too little."""

from __future__ import annotations

import re
from enum import StrEnum
from functools import lru_cache
from typing import NamedTuple


class Kind(StrEnum):
    """What a step is to the database and to the world."""

    READ = "read"
    WRITE = "write"
    LOCK = "lock"
    SCHEMA = "schema"
    BEGIN = "begin"
    COMMIT = "commit"
    ROLLBACK = "rollback"
    SETTING = "setting"  # of the connection: nothing that others see
    UNKNOWN = "unknown"  # a statement that may do anything
    CALL = "call"
    FILE = "file"
    SOCKET = "socket"
    PROCESS = "process"


ANYTHING = "*"  # a table name that stands for every table
LOCKS = "~locks"  # advisory locks, which are no table

NAME = r'(?:"(?:[^"]|"")+"|`[^`]+`|\[[^\]]+\]|[A-Za-z_][\w$]*)'
TABLE = rf"{NAME}(?:\s*\.\s*{NAME})*"
NOISE = re.compile(
    r"--[^\n]*|/\*.*?\*/|\$([A-Za-z_]*)\$.*?\$\1\$|[eE]?'(?:[^']|'')*'",
    re.DOTALL,
)
WRITTEN = re.compile(
    rf"\b(?:INSERT\s+(?:OR\s+\w+\s+)?INTO|REPLACE\s+INTO|MERGE\s+INTO|DELETE\s+FROM(?:\s+ONLY)?"
    rf"|TRUNCATE(?:\s+TABLE)?|COPY)\s+({TABLE})",
    re.IGNORECASE,
)
UPDATED = re.compile(
    rf"(?<!\bFOR\s)(?<!\bDO\s)(?<!\bON\s)\bUPDATE\s+(?:OR\s+\w+\s+)?(?:ONLY\s+)?({TABLE})", re.IGNORECASE
)
SHAPED = re.compile(
    rf"\b(?:TABLE|VIEW|INDEX(?:\s+CONCURRENTLY)?|SEQUENCE|TYPE|TRIGGER|FUNCTION|SCHEMA|EXTENSION)"
    rf"\s+(?:IF\s+(?:NOT\s+)?EXISTS\s+)?({TABLE})(?:.*?\bON\s+({TABLE}))?",
    re.IGNORECASE | re.DOTALL,
)
READ = re.compile(
    rf"\b(?:FROM|JOIN|USING)\s+(?:ONLY\s+|LATERAL\s+)?({TABLE})(?![\w$.])(?!\s*\()", re.IGNORECASE
)
LISTED = re.compile(
    rf"\bFROM\s+{TABLE}(?:\s+(?:AS\s+)?\w+)?((?:\s*,\s*{TABLE}(?:\s+(?:AS\s+)?\w+)?)+)", re.IGNORECASE
)
NAMED_QUERY = re.compile(
    rf"(?:\bWITH(?:\s+RECURSIVE)?|,)\s*({NAME})\s*(?:\([^)]*\)\s*)?"
    r"AS\s*(?:NOT\s+)?(?:MATERIALIZED\s*)?\(",
    re.IGNORECASE,
)
ADVISORY = re.compile(r"\bpg_(?:try_)?advisory_(?:xact_)?lock", re.IGNORECASE)
PASSING = re.compile(r"^notify\b|\bpg_notify\s*\(", re.IGNORECASE)  # a hint, which may be lost anyway
LOCKED = re.compile(rf"\bLOCK\s+(?:TABLE\s+)?({TABLE})", re.IGNORECASE)
ROW_LOCK = re.compile(r"\bFOR\s+(?:NO\s+KEY\s+)?(?:UPDATE|SHARE)\b|\bFOR\s+KEY\s+SHARE\b", re.IGNORECASE)
CALLED = re.compile(r"\b([A-Za-z_]\w*)\s*\(")


def words(text: str) -> frozenset[str]:
    return frozenset(text.split())


KEYWORDS = words(
    "from join using select set where values only lateral table if not exists as on returning default"
)
# Functions that change nothing others can see, so that a SELECT of them alone is no step that matters.
HARMLESS = words(
    "select now current_timestamp clock_timestamp version count coalesce cast max min sum exists values as in and or"
    " current_schema current_database current_setting pg_backend_pid set_config nextval currval lastval"
    " last_insert_rowid changes random gen_random_uuid hashtext hashtextextended datetime strftime sqlite_version"
    " pg_sleep pg_typeof to_regclass json_each unnest length lower upper"
)
FIRST = {
    "begin": Kind.BEGIN,
    "start": Kind.BEGIN,
    "savepoint": Kind.BEGIN,
    "commit": Kind.COMMIT,
    "end": Kind.COMMIT,
    "rollback": Kind.ROLLBACK,
    "abort": Kind.ROLLBACK,
    "release": Kind.SETTING,
    "truncate": Kind.WRITE,
    "lock": Kind.LOCK,
    **dict.fromkeys(words("create alter drop"), Kind.SCHEMA),
    **dict.fromkeys(
        words(
            "pragma set show reset attach detach listen unlisten discard deallocate analyze vacuum explain close"
        ),
        Kind.SETTING,
    ),
    **dict.fromkeys(words("insert update delete merge replace copy"), Kind.WRITE),
}


class Meaning(NamedTuple):
    """What a statement does: its kind and the tables it reads and writes."""

    kind: Kind
    reads: tuple[str, ...]
    writes: tuple[str, ...]


@lru_cache(maxsize=2000)
def meaning_of(text: str) -> Meaning:
    """Read a statement. What is not understood is `UNKNOWN` and touches every table."""
    bare = NOISE.sub(" '' ", text).strip().strip(";").strip()
    first = bare.split(None, 1)[0].lower().rstrip(";") if bare else ""
    kind = FIRST.get(first)
    if PASSING.search(bare):
        return Meaning(Kind.SETTING, (), ())
    if kind is Kind.COMMIT or kind is Kind.ROLLBACK or kind is Kind.SETTING:
        return Meaning(
            Kind.BEGIN if re.match(r"rollback\s+(?:\w+\s+)?to\b", bare, re.IGNORECASE) else kind, (), ()
        )
    if kind is Kind.BEGIN:
        exclusive = re.match(r"begin\s+(immediate|exclusive)", bare, re.IGNORECASE)
        return Meaning(kind, (), (LOCKS,) if exclusive else ())
    own = {plain(name) for name in NAMED_QUERY.findall(bare)}
    if kind is Kind.SCHEMA:
        return _of_schema(bare)
    writes = {plain(name) for name in (*WRITTEN.findall(bare), *UPDATED.findall(bare))} - own - KEYWORDS
    reads = {plain(name) for name in _read(bare)} - own - KEYWORDS - writes
    if kind is Kind.LOCK:
        return Meaning(kind, (), tuple(plain(name) for name in LOCKED.findall(bare)))
    if writes:
        return Meaning(Kind.WRITE, tuple(sorted(reads)), tuple(sorted(writes)))
    if ADVISORY.search(bare):
        return Meaning(Kind.LOCK, tuple(sorted(reads)), (LOCKS,))
    if first in ("select", "with", "values", "table", "declare", "fetch"):
        if ROW_LOCK.search(bare):
            return Meaning(Kind.LOCK, (), tuple(sorted(reads)))
        unknown = {name.lower() for name in CALLED.findall(bare)} - HARMLESS - KEYWORDS
        if reads or not unknown:
            return Meaning(Kind.READ, tuple(sorted(reads)), ())
    return Meaning(Kind.UNKNOWN, (ANYTHING,), (ANYTHING,))


def plain(name: str) -> str:
    """A table's name without quotes and without the schema that is meant when none is named."""
    parts = [part.strip().strip('"`[]') for part in re.split(r"\s*\.\s*", name.strip())]
    parts = [part if '"' in name else part.lower() for part in parts]
    if len(parts) > 1 and parts[0] in ("public", "main"):
        parts = parts[1:]
    return ".".join(parts)


def touch_alike(reads: set[str], writes: set[str], other_reads: set[str], other_writes: set[str]) -> bool:
    """Whether the order of two steps can matter: one writes what the other reads or writes."""
    return _meet(writes, other_writes) or _meet(writes, other_reads) or _meet(reads, other_writes)


def _meet(some: set[str], others: set[str]) -> bool:
    if not some or not others:
        return False
    return ANYTHING in some or ANYTHING in others or not some.isdisjoint(others)


def _read(bare: str) -> list[str]:
    found = READ.findall(bare)
    for listed in LISTED.findall(bare):
        found += [part.strip().split()[0] for part in listed.split(",") if part.strip()]
    return found


def _of_schema(bare: str) -> Meaning:
    if re.match(r"create\s+(?:local\s+|global\s+)?temp", bare, re.IGNORECASE):
        return Meaning(Kind.SETTING, (), ())
    found = SHAPED.search(bare)
    names = [plain(name) for name in found.groups() if name] if found else [ANYTHING]
    return Meaning(Kind.SCHEMA, (), tuple(sorted(set(names))))
