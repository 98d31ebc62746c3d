"""The steps of a move, each of which may be the last one before a crash: whoever runs it again goes on from there.

The file says how far it is: draining, closed, moved. So says the new database: filling, open. The order is why no job
runs twice: nobody claims in the file before anybody can in the new database, which opens in the transaction that brings
all jobs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from fencerow.core.config import CoreConfig
from fencerow.core.model.ids import new_id
from fencerow.core.schema.migrate import check_schema
from fencerow.db.engine import Engine
from fencerow.db.postgres import PostgresEngine
from fencerow.db.sqlite import SqliteEngine
from fencerow.moving import source, target
from fencerow.moving.canonical import counted
from fencerow.moving.draining import drain
from fencerow.moving.errors import MoveRefused
from fencerow.moving.model import MoveReport, NotedMove, TableCount, Tell
from fencerow.moving.tables import Table, moving_tables, staying

PART_ROWS = 500
PART_CHARACTERS = 1 << 20


def _untold(_step: str, _done: int, _of: int) -> None:
    return


@dataclass(frozen=True, slots=True)
class Mover:
    """Moves all jobs of one database to another.

    `acting`: the file's engine as the person who asks for it stands before it. `name`: the new database's, without a
    password, as workers of the old one are told it.
    """

    engine: SqliteEngine
    acting: Engine
    other: PostgresEngine
    config: CoreConfig
    name: str
    actor: str | None = None
    tell: Tell = _untold
    part_rows: int = PART_ROWS

    def planned(self) -> MoveReport:
        """What a move would do, in numbers. Nothing is changed."""
        tables, known = self._tables(), self._known()
        if known is None:
            with self.other.session() as session:
                target.refuse_full(self.other, session.connection, tables)
        return self._report(tables, self._counted(tables), known)

    def move(self, *, wait_s: float) -> MoveReport:
        """Move everything, or go on with a move that was broken off.

        Raises:
            MoveRefused: it cannot be done, or jobs run on for longer than `wait_s`. MoveUnverified: what came is
            not what was sent.
        """
        tables = self._tables()
        known = self._known() or self._begin(tables)
        if known.state == "moved":
            target.drop_fences(self.other, tables)
            return self._report(tables, {}, known)
        self._fill_from(known, tables, wait_s)
        sent = self._counted(tables)
        with source.reading(self.engine) as connection:
            numbers = source.counters(self.engine, connection, tables)
        target.open_filled(
            self.other, known.id, tables, sent, numbers, tell=lambda name: self.tell(f"open {name}", 0, 0)
        )
        if self._there(known) != "open":
            raise _taken_back()
        self.tell("opened", 0, 0)
        target.drop_fences(self.other, tables)
        self.engine.run(source.end_move(known.id))
        self.tell("moved", 0, 0)
        return self._report(tables, sent, self._known())

    def reopen(self) -> bool:
        """Take a move back that has not come to its end; false if there is none.

        Raises:
            MoveRefused: the new database is open already, so jobs may have run there.
        """
        known = self._known()
        if known is None:
            return False
        self.other.run(target.forget_filling(known.id))
        if self._there(known):
            raise MoveRefused(
                "the new database is open already",
                "its workers may have run jobs, which would run again here",
                "run `fencerow move` once more to end the move",
            )
        target.drop_fences(self.other, self._tables())
        source.reopen(self.engine, self.acting, known)
        return True

    def _begin(self, tables: Sequence[Table]) -> NotedMove:
        with self.other.session() as session:
            target.refuse_full(self.other, session.connection, tables)
        self.acting.run(source.begin_move(new_id(), other=self.name, actor=self.actor))
        self.tell("begun", 0, 0)
        known = self._known()
        assert known is not None
        return known

    def _fill_from(self, known: NotedMove, tables: Sequence[Table], wait_s: float) -> None:
        """Close both databases, each in its turn, and bring everything over."""
        there = self._there(known)
        if there == "open":
            return
        if there is None:
            self._close_other(known, tables)
        if known.state == "draining":
            source.stop_claims(self.engine)
            self.tell("claims stopped", 0, 0)
            closed = False
            while not closed:  # a claim that was under way may have begun one since
                drain(self.engine, self.config, wait_s, lambda running: self.tell("running", 0, running))
                closed = source.close(self.engine, known)
                if self._known() is None:
                    raise _taken_back()
            self.tell("closed", 0, 0)
        self._copy(known, tables)

    def _close_other(self, known: NotedMove, tables: Sequence[Table]) -> None:
        there = NotedMove(
            known.id, "to", "filling", str(self.engine.path), known.owner, known.since_us, known.begun_by
        )
        try:
            target.begin_filling(self.other, there, tables)
        except MoveRefused:
            if known.state == "draining":  # nothing has happened yet
                source.reopen(self.engine, self.acting, known)
            raise
        self.tell("other closed", 0, 0)

    def _copy(self, known: NotedMove, tables: Sequence[Table]) -> None:
        came = self.other.run(target.count_parts(known.id))
        with source.reading(self.engine) as connection:
            for table in tables:
                first = came.get(table.name, 0)
                for texts in _parts(
                    source.rows_of(self.engine, connection, table, behind=first), self.part_rows
                ):
                    if not self.other.run(target.put_part(known.id, table.name, first=first, texts=texts)):
                        raise MoveRefused(
                            f"somebody else brings {table.name} just now",
                            "another `fencerow move` is at work, or the move was taken back",
                            "let one of them do it; run this again when it has ended",
                        )
                    first += len(texts)
                    self.tell(table.name, first, 0)

    def _there(self, known: NotedMove) -> str | None:
        """How far the new database says that this move is; None: it knows nothing of it."""
        found = [each.state for each in self.other.run(source.read_moves()) if each.id == known.id]
        return found[0] if found else None

    def _tables(self) -> list[Table]:
        """What moves.

        Raises:
            MoveRefused: the two schemas are not the same.
        """
        here, there = (
            {row.version: row.name for row in check_schema(each)} for each in (self.engine, self.other)
        )
        if here != there:
            raise MoveRefused(
                f"the file is at migration {max(here)}, the new database at {max(there)}",
                "a move leads from a schema to the same",
                "run `fencerow migrate` on both with one version of Fencerow",
            )
        return moving_tables(self.engine, self.other)

    def _known(self) -> NotedMove | None:
        """The move that the file knows, if it is this one.

        Raises:
            MoveRefused: it goes elsewhere.
        """
        found = self.engine.run(source.read_moves())
        if found and found[0].other != self.name:
            raise MoveRefused(
                f"the jobs of {self.engine.path} move to {found[0].other} already",
                "they can go to one place only",
                "name that one, or take that move back with --reopen",
            )
        return found[0] if found else None

    def _counted(self, tables: Sequence[Table]) -> dict[str, TableCount]:
        with source.reading(self.engine) as connection:
            return {table.name: counted(source.rows_of(self.engine, connection, table)) for table in tables}

    def _report(
        self, tables: Sequence[Table], sent: Mapping[str, TableCount], known: NotedMove | None
    ) -> MoveReport:
        with source.reading(self.engine) as connection:
            outside = source.count_outside(self.engine, connection)
        return MoveReport(
            known.id if known else None,
            str(self.engine.path),
            self.name,
            known.state if known else "not begun",
            {table.name: sent[table.name] for table in tables if table.name in sent},
            staying(),
            self.engine.run(source.count_running()),
            outside,
        )


def _taken_back() -> MoveRefused:
    return MoveRefused(
        "the move was taken back",
        "somebody ran `fencerow move --reopen` meanwhile",
        "begin it anew if you want it",
    )


def _parts(texts: Iterator[str], rows_max: int) -> Iterator[list[str]]:
    """The rows in parts that one statement takes."""
    part: list[str] = []
    size = 0
    for text in texts:
        part.append(text)
        size += len(text)
        if len(part) >= rows_max or size >= PART_CHARACTERS:
            yield part
            part, size = [], 0
    if part:
        yield part
