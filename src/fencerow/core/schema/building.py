"""Indexes of our own live tables, built beside the work of others: CREATE INDEX CONCURRENTLY, and what crashes leave.

A build runs in no transaction, so a crash in the middle leaves an index that is not whole. It is never dropped under
its own name: under the fence of whoever builds it gets another name, and only what has such a name is dropped. So a
migrator that was stopped for an hour and goes on cannot drop what its successor has made.

An index over partitions cannot be built so. Its empty head is made, then a part on each partition, and each part is
hung from the head, which is whole with the last.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from fencerow.core.errors import Busy, SchemaMissing, SchemaTampered
from fencerow.db.migration import Migration
from fencerow.db.queries import Query
from fencerow.db.run import Pause, Procedure, Row, Rows, Statement, Steps, ask, execute, operation

CREATE = re.compile(r"CREATE (UNIQUE )?INDEX ([a-z_][a-z0-9_]*) ON (\S+) (.*)", re.DOTALL)
MARK = "/* fencerow migrate */"  # what the statements of a build begin with: so others see that the server is at it
LEASE_S = 30.0
WAIT_S = 0.5
TRIES_MAX = 10
NAME_LENGTH_MAX = 63


@dataclass(frozen=True, slots=True)
class Building:
    """A part of a migration, or with `number` None what was found broken, taken for building under this fence."""

    migration: Migration
    number: int | None
    holder: str
    attempt: int


@dataclass(frozen=True, slots=True)
class Index:
    """An index that shall be there: `rest` is what follows the table in the statement that makes it."""

    name: str
    table: str
    rest: str
    is_unique: bool

    def create(self, how: str) -> str:
        kind = "UNIQUE " if self.is_unique else ""
        return f"CREATE {kind}INDEX {how} {self.table} {self.rest}"


@dataclass(frozen=True, slots=True)
class Existing:
    """What is there of an index. `left`: what was set aside of it and is to be dropped."""

    schema: str
    partitioned: bool
    there: bool
    whole: bool
    left: Sequence[str]
    under_way: bool = False
    gone: bool = False  # the table is: a partition that was dropped meanwhile


class TakenOver(Busy):
    """Somebody else may have this build by now, so nothing more may be done for it."""


def indexes_of(query: Query) -> list[Index]:
    """The indexes that a part of a migration consists of.

    Raises:
        ValueError: it has another statement. It is a mistake of ours; a test reads every file.
    """
    found = []
    for text in query.statements:
        if (match := CREATE.fullmatch(text)) is None:
            raise ValueError(f"{query.name} can only make indexes, not: {text}")
        found.append(Index(match[2], match[3], match[4], bool(match[1])))
    return found


def build(indexes: Sequence[Index], work: Building) -> Procedure[None]:
    """Make every index that is not there yet. May be repeated from anywhere; ends with the row released.

    Raises:
        Busy: the lease was lost, or others stood in the way too often. What is there stays; run it again.
        SchemaTampered: there is something else under the name of an index.
    """
    for index in indexes:
        yield from _make(index, work)
    if not (yield from ask(finish(work))):
        raise lost()


def _make(index: Index, work: Building) -> Procedure[None]:
    """Try until it is whole. Each round begins with a look, for others and crashes may have come in between."""
    for _ in range(TRIES_MAX):
        try:
            if (yield from _advance(index, work)):
                return
        except TakenOver:
            raise
        except (Busy, SchemaMissing):  # the latter of a partition that was dropped in this instant
            yield Pause(WAIT_S)
    raise Busy(
        f"the index {index.name} could not be built",
        f"others stood in its way {TRIES_MAX} times: long locks on {index.table}, or a migrator that is gone",
        "run `fencerow migrate` again; what is there stays",
    )


def _advance(index: Index, work: Building) -> Procedure[bool]:
    """One round; whether the index is whole."""
    found = yield from ask(examine(index, work))
    if found.under_way:
        raise Busy("the server still builds for a migrator that is gone", "it cannot be stopped", "wait")
    for name in found.left:
        yield from ask(drop_left(f"{found.schema}.{name}"))
    if found.whole or found.gone:
        return True
    if found.partitioned:
        yield from _make_on_partitions(index, found, work)
    else:
        yield from ask(create_concurrently(index))
    return False


def _make_on_partitions(index: Index, found: Existing, work: Building) -> Procedure[None]:
    if not found.there:
        yield from ask(make_head(index, work))
    for table, leaf in (yield from ask(leaves(index))):
        part = replace(index, name=f"{index.name}_{leaf}"[:NAME_LENGTH_MAX], table=table)
        yield from _make(part, work)
        yield from ask(attach(f"{found.schema}.{index.name}", f"{found.schema}.{part.name}", work))


@operation(repeatable=True, writes="schema")
def examine(index: Index, work: Building) -> Steps[Existing]:
    """What is there of the index. One that is not whole is set aside, under the fence.

    Raises:
        Busy: the fence is lost. SchemaTampered: something else has the name. Nothing was changed.
    """
    yield from _hold(work)
    # Asked before the look: a statement that ends in between is seen whole then, instead of being set aside.
    under_way = bool((yield from execute("building_under_way", mark=MARK))[0][0])
    found = yield from _find(index)
    if found.there and not found.whole and not found.partitioned:
        if under_way:
            return replace(found, under_way=True)
        aside = f"{index.name}_left_{work.attempt}"
        yield from execute("be_brief")
        yield from _say(f"ALTER INDEX {found.schema}.{index.name} RENAME TO {aside}")
        return replace(found, there=False, left=[*found.left, aside])
    return found


@operation(alone=True, writes="schema", patience_s=math.inf)
def drop_left(name: str) -> Steps[None]:
    """Drop what was set aside. Waits for those who may still use it."""
    yield from _say(f"{MARK} DROP INDEX CONCURRENTLY IF EXISTS {name}")


@operation(alone=True, writes="schema", patience_s=math.inf)
def create_concurrently(index: Index) -> Steps[None]:
    """Build it beside the others' work: waits for every transaction that is older, and nobody waits for it."""
    # Should it be there by now, it is by a try of this statement that was cut off, or by somebody else: looked at next.
    yield from _say(f"{MARK} {index.create(f'CONCURRENTLY IF NOT EXISTS {index.name} ON')}")


@operation(repeatable=True, writes="schema")
def make_head(index: Index, work: Building) -> Steps[None]:
    """The index of a table with partitions, of which no partition has its part yet."""
    yield from _hold(work)
    yield from execute("be_brief")
    yield from _say(index.create(f"{index.name} ON ONLY"))


@operation(alone=True, repeatable=True, writes="")
def leaves(index: Index) -> Steps[list[tuple[str, str]]]:
    """The partitions without their part of it: the table as it is written, and its bare name."""
    rows = yield from execute("leaves_without_index", tab=index.table, name=index.name)
    return [(str(table), str(leaf)) for table, leaf in rows]


@operation(repeatable=True, writes="schema")
def attach(head: str, part: str, work: Building) -> Steps[None]:
    """Hang a part from its head."""
    yield from _hold(work)
    if (yield from execute("relation_exists", name=part))[0][0]:  # else its table is gone
        yield from execute("be_brief")
        yield from _say(f"ALTER INDEX {head} ATTACH PARTITION {part}")


@operation(alone=True, repeatable=True, writes="schema")
def renew(work: Building, lease_s: float) -> Steps[bool]:
    """Move the lease on, or with 0 give it up; false when it is lost."""
    return bool((yield from execute("renew_work", holder=work.holder, attempt=work.attempt, lease_s=lease_s)))


@operation(alone=True, writes="schema")
def finish(work: Building) -> Steps[bool]:
    """Note the part, if it is one, and release the row; false when somebody else has it."""
    parts = 0 if work.number is None else 1
    return bool((yield from execute("finish_work", holder=work.holder, attempt=work.attempt, parts=parts)))


@operation(alone=True, repeatable=True, writes="")
def broken(ledger: str, names: Sequence[str]) -> Steps[list[Index]]:
    """Those of these indexes that are there and not whole."""
    rows = yield from execute("broken_indexes", ledger=ledger, names=list(names))
    return [Index(str(name), str(table), str(rest), bool(is_unique)) for name, table, is_unique, rest in rows]


@operation(alone=True, repeatable=True, writes="")
def progress(ledger: str) -> Steps[str | None]:
    """What the server builds of ours at this moment, in words; None when nothing."""
    rows = yield from execute("building_progress", ledger=ledger)
    return _in_words(rows[0]) if rows else None


def lost() -> TakenOver:
    """The lease was not renewed in time."""
    return TakenOver(
        "the build of an index may have been taken over by another migrator",
        "the lease of this one was not renewed in time",
        "run `fencerow migrate` again; what is there stays",
    )


def _hold(work: Building) -> Steps[None]:
    if not (yield from execute("hold_work", holder=work.holder, attempt=work.attempt)):
        raise lost()


def _find(index: Index) -> Steps[Existing]:
    """What has the name; refused if it is another index, for a name alone proves nothing."""
    rows = yield from execute("find_index", tab=index.table, name=index.name)
    if not rows:
        return Existing("", False, False, False, [], gone=True)
    schema, partitioned, there, whole, definition = rows[0]
    if there and definition is None:
        raise _another(index, "it is no index of this table")
    if there:
        wanted = yield from _definition(index, str(schema))
        if definition != wanted:
            raise _another(index, f"the migration makes {wanted}, the database has {definition}")
    left = yield from execute("set_aside_indexes", tab=index.table, name=index.name)
    return Existing(str(schema), bool(partitioned), bool(there), bool(whole), [str(row[0]) for row in left])


def _definition(index: Index, schema: str) -> Steps[str]:
    """What the server calls this index: it makes one on an empty copy of the table, which is dropped at once."""
    copy = f"{schema}.schema_copy"
    yield from _say(f"CREATE TABLE {copy} (LIKE {index.table})")
    yield from _say(replace(index, table=copy).create("schema_copy_index ON"))
    ((*_, definition),) = yield from execute("find_index", tab=copy, name="schema_copy_index")
    yield from _say(f"DROP TABLE {copy}")
    return str(definition)


def _another(index: Index, why: str) -> SchemaTampered:
    return SchemaTampered(
        f"there is something else under the name of the index {index.name} of {index.table}",
        why,
        "drop or rename it, then run `fencerow migrate` again",
    )


def _say(text: str) -> Steps[Rows]:
    """A statement that is composed of names: ours, or from the catalogue where they are quoted."""
    query = Query("building", (text,), ())
    return (yield Statement(query.name, {}, query))


def _in_words(row: Row) -> str:
    table, phase, blocks, of_blocks, tuples, of_tuples, waits, pid, whose, since_s = row
    text = f"{table}: {phase}"
    done, total = (blocks, of_blocks) if of_blocks else (tuples, of_tuples)
    if isinstance(done, int) and isinstance(total, int) and total > 0:
        text += f", {100 * done // total} %"
    if pid:
        text += f", waits for process {pid}" + (f" ({whose})" if whose else "")
        text += f", in a transaction since {float(str(since_s)):.0f} s" if since_s is not None else ""
        text += f", and {waits} more" if isinstance(waits, int) and waits > 1 else ""
    return text
