"""One shard from beginning to end: one migration after the other, waiting where others are at work, one report."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace

import psycopg

from fencerow.core.errors import FencerowError
from fencerow.db.faults import first_line
from fencerow.db.run import Operation
from fencerow.db.steady import steady
from fencerow.migrations.advance import Advance, Aim, NotedMigration, OutsideTransaction, WaitReason, look
from fencerow.migrations.apart import run_apart
from fencerow.migrations.direct import Direct, Raw, UserFailed, is_contention, is_lost
from fencerow.migrations.errors import LedgerUnreadable, MigrationFailed, ShardBusy, ShardUnreachable
from fencerow.migrations.folder import ShardMigration
from fencerow.migrations.judge import ahead, left_to_run
from fencerow.migrations.ledger import Noted, missing_ledger
from fencerow.migrations.report import Outcome, ShardReport
from fencerow.migrations.shard import Shard, unreachable

POLL_MIN_S = 0.02
POLL_MAX_S = 0.5

Next = Callable[[Aim], Operation[Advance]]
Told = Callable[[str, str], object]  # of the shard, and of the migration that ended there


@dataclass(slots=True)
class ShardRun:
    """What happens on one shard in one run. Used by one thread."""

    shard: Shard
    aim: Aim
    wait_s: float
    connect_timeout_s: float
    told: Told | None
    ran: list[ShardMigration] = field(default_factory=list)

    def advance(self, following: Next) -> ShardReport:
        """Do one migration after the other until none is left. An error ends this shard's run, and no other's."""
        started = time.monotonic()
        error: FencerowError | None = None
        try:
            with closing(self._connect()) as shard:
                self._all(shard, following)
        except FencerowError as raised:
            error = raised
        standing = self.look()
        if error is None:
            # What is left was not asked for: `to`, or a way back.
            error, outcome = standing.error, Outcome.DONE if standing.error is None else standing.outcome
        else:
            outcome = _outcome(error)
        ran = tuple(str(migration) for migration in self.ran)
        return replace(standing, outcome=outcome, error=error, ran=ran, took_s=time.monotonic() - started)

    def look(self) -> ShardReport:
        """How the shard stands, and what is left. Changes nothing, and makes no file."""
        try:
            noted = self._noted()
            left = left_to_run(self.aim.migrations, noted, out_of_order=self.aim.out_of_order)
        except FencerowError as error:
            return ShardReport(self.shard.name, _outcome(error), error=error)
        return ShardReport(
            self.shard.name,
            Outcome.PENDING if left else Outcome.DONE,
            at=max((line.version for line in noted if line.whole), default=0),
            left=tuple(str(migration) for migration in left),
            ahead=tuple(str(line) for line in ahead(self.aim.migrations, noted)),
            begun=next((str(line) for line in noted if not line.whole), None),
        )

    def _noted(self) -> list[Noted]:
        """The ledger; where there is none yet, what the first migration would find in it."""
        if self.shard.is_absent:
            return []
        with closing(self._connect(writes=False)) as shard, self._reading():
            noted, strangers = shard.run(look(self.aim.ledger, self.aim.dialect))
        if noted is not None:
            return noted
        if strangers and self.aim.baseline is None:
            raise missing_ledger(self.aim.ledger.written(self.aim.dialect), strangers)
        through = self.aim.baseline or 0
        return [
            Noted(migration.version, migration.name, migration.checksum, "applied", 1, None)
            for migration in self.aim.migrations
            if migration.version <= through
        ]

    def _all(self, shard: Direct, following: Next) -> None:
        pause_s, until = POLL_MIN_S, time.monotonic() + self.wait_s
        while (got := self._one(shard, following)) is not None:
            if isinstance(got, ShardMigration):
                self.ran.append(got)
                if self.told is not None:
                    self.told(self.shard.name, str(got))
                pause_s, until = POLL_MIN_S, time.monotonic() + self.wait_s
            elif time.monotonic() + pause_s > until:
                raise _busy(self.shard, got, self.wait_s)
            else:
                time.sleep(pause_s)  # in no transaction: a waiter inside one would hang against CONCURRENTLY
                pause_s = min(2 * pause_s, POLL_MAX_S)

    def _one(self, shard: Direct, following: Next) -> ShardMigration | str | None:
        """The migration that was done, why none could be done now, or None if none is left."""
        inside, sent = True, steady()
        try:
            got = shard.run(following(self.aim))
            if isinstance(got, OutsideTransaction):
                inside = False
                run_apart(shard, self._connect, self.aim, got, sent)
                return got.migration
        except UserFailed as error:
            raise _failed(self.shard, error, inside=inside) from error.__cause__
        except (psycopg.Error, sqlite3.Error) as error:
            if is_contention(error):
                return first_line(error)
            raise _translated(self.shard, error) from error
        if isinstance(got, NotedMigration):
            return got.migration
        return got.value if isinstance(got, WaitReason) else None

    @contextmanager
    def _reading(self) -> Iterator[None]:
        try:
            yield
        except (psycopg.Error, sqlite3.Error) as error:
            raise _translated(self.shard, error) from error

    def _connect(self, *, writes: bool = True, session: str | None = None) -> Direct:
        return self.shard.connect(
            self.aim.ledger,
            connect_timeout_s=self.connect_timeout_s,
            busy_timeout_s=self.aim.lock_wait_s,
            writes=writes,
            session=session,
        )


def _outcome(error: FencerowError) -> Outcome:
    match error:
        case ShardUnreachable():
            return Outcome.UNREACHABLE
        case ShardBusy():
            return Outcome.BUSY
        case _:
            return Outcome.FAILED


def _failed(shard: Shard, error: UserFailed, *, inside: bool) -> MigrationFailed:
    cause, line = error.__cause__, _line(error)
    return MigrationFailed(
        f"{error.statement.source}{f', line {line}' if line else ''} failed on shard {shard.name}",
        f"{type(cause).__name__}: {first_line(cause)}" if cause else "",
        "this migration was rolled back; correct it and run again"
        if inside
        else "the effects of its earlier statements stay; correct it and run again, it starts from its first statement",
    )


def _line(error: UserFailed) -> int | None:
    """The line in the file that the server means, else that in which the statement begins."""
    if not isinstance(error.statement, Raw):
        return None
    statement, cause = error.statement, error.__cause__
    position = cause.diag.statement_position if isinstance(cause, psycopg.Error) else None
    if position is None or statement.query is None:
        return statement.line
    sent = f"{statement.prefix}{statement.query.statements[0]}"
    return statement.line + sent.count("\n", 0, int(position) - 1)


def _translated(shard: Shard, error: psycopg.Error | sqlite3.Error) -> FencerowError:
    if is_lost(error):
        return unreachable(shard, f"the connection broke: {first_line(error)}")
    return LedgerUnreadable(
        f"the ledger of shard {shard.name} cannot be read or written",
        f"{type(error).__name__}: {first_line(error)}",
        "nothing was run; give the role its privileges, or find out what happened to the ledger",
    )


def _busy(shard: Shard, why: str, wait_s: float) -> ShardBusy:
    return ShardBusy(
        f"shard {shard.name} was not free within {wait_s:g} s",
        why,
        "run it again later: it does what is left",
    )
