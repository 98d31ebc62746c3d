"""`Migrator`: numbered migrations for one database or many, each migration once per shard."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from fencerow.core.answering import answer
from fencerow.core.model.seconds import Seconds, in_seconds
from fencerow.db.numbers import check_number
from fencerow.migrations.advance import Aim, apply_next, revert_next
from fencerow.migrations.errors import InvalidMigrations, UnknownShard
from fencerow.migrations.folder import ShardMigration, read_folder
from fencerow.migrations.ledger import Ledger
from fencerow.migrations.report import Report, ShardReport
from fencerow.migrations.run import ShardRun, Told
from fencerow.migrations.shard import Shard, declared
from fencerow.migrations.threaded import threaded

Names = Iterable[str] | None


@answer
class Migrator:
    """Migrates your databases by the migrations in a folder: any number of databases, several at a time.

        messages = Migrator({"a": "postgresql://…/a", "b": "postgresql://…/b"}, Path(__file__).parent / "migrations")
        report = messages.migrate()

    The folder has `0001_create_messages.sql` (and `0001_create_messages.down.sql`), or `0002_fill.py` with
    `up(connection)` (and `down(connection)`), and folders `postgres` and `sqlite` where the dialects differ.
    Each shard notes in its table `ledger` which migrations ran. A shard needs no tables of Fencerow.

    Many migrators at once are safe: the lock of a shard is taken before its ledger is read, and a migration, the
    look at the ledger and its line there are one transaction. A migration with the line
    `-- migrate: no transaction` runs outside of a transaction, under a lease of `lease_s`. It must be safe to
    start it again.

    At most `parallel` shards are worked on at a time, with a connection each, and two more while a migration runs
    outside of a transaction. A migration waits for the lock of a table for `lock_wait_s` at a time, so that
    others get through. `wait_s` is how long a shard may keep the migrator waiting before the next migration
    starts.

    Raises:
        InvalidMigrations: the folder or a shard cannot be used. UrlError: a URL names no database that
            Fencerow can use.
    """

    def __init__(
        self,
        shards: str | Mapping[str, str],
        folder: str | Path,
        *,
        ledger: str = "schema_ledger",
        parallel: int = 4,
        out_of_order: bool = False,
        wait_s: Seconds = 60.0,
        lock_wait_s: Seconds = 5.0,
        lease_s: Seconds = 30.0,
        connect_timeout_s: Seconds = 5.0,
        actor: str | None = None,
    ) -> None:
        wait_s, lock_wait_s = in_seconds(wait_s), in_seconds(lock_wait_s)
        lease_s, connect_timeout_s = in_seconds(lease_s), in_seconds(connect_timeout_s)
        check_number("parallel", parallel, 1, 1_000)
        check_number("wait_s", wait_s, 0.0, 86_400.0)
        check_number("lock_wait_s", lock_wait_s, 0.01, 3_600.0)
        check_number("lease_s", lease_s, 1.0, 3_600.0)
        check_number("connect_timeout_s", connect_timeout_s, 0.1, 300.0)
        self._shards = declared(shards)
        self._folder = Path(folder).absolute()
        self._ledger = Ledger.of(ledger)
        self._parallel = parallel
        self._out_of_order = out_of_order
        self._wait_s, self._lock_wait_s, self._lease_s = wait_s, lock_wait_s, lease_s
        self._connect_timeout_s = connect_timeout_s
        self._actor = actor
        for dialect in sorted(self.dialects):
            self.migrations(dialect)

    @property
    def shards(self) -> Sequence[str]:
        """Their names, in the order in which they were declared."""
        return tuple(self._shards)

    @property
    def dialects(self) -> set[str]:
        """Which of `postgres` and `sqlite` the shards are."""
        return {shard.dialect for shard in self._shards.values()}

    def migrations(self, dialect: str) -> list[ShardMigration]:
        """The migrations of the folder for one dialect, in order, read afresh.

        Raises:
            InvalidMigrations: two have one number, or a file cannot work.
        """
        return read_folder(self._folder, dialect)

    def plan(self, *, baseline: int | None = None, shards: Names = None) -> Report:
        """What `migrate` would run on each shard (`left`). Changes nothing and makes nothing.

        Raises:
            InvalidMigrations, UnknownShard: nothing was looked at.
        """
        return self._each(shards, baseline, lambda run: run.look())

    def status(self, *, shards: Names = None) -> Report:
        """The state of each shard, as `plan` gives it."""
        return self.plan(shards=shards)

    def migrate(
        self,
        *,
        to: int | None = None,
        baseline: int | None = None,
        shards: Names = None,
        told: Callable[[str, str], object] | None = None,
    ) -> Report:
        """Run what is missing on every shard, up to number `to`. May be repeated; it does what is left.

        A shard that fails or cannot be reached does not stop the others: see the report's `ok` and `failed`,
        or `raise_failed()`. Migrations that ran before a failing one stay. `baseline` is for shards that have
        tables but no ledger yet: it notes the migrations up to that number as run. Shards that have a ledger
        ignore it. `told` is called with the names of the shard and of the migration when one is done there, from
        several threads.

        Raises:
            InvalidMigrations, UnknownShard: nothing was run on any shard.
        """
        return self._each(shards, baseline, lambda run: run.advance(lambda aim: apply_next(aim, to=to)), told)

    def down(self, to: int, *, shards: Names = None) -> Report:
        """Take back the migrations above number `to`, the newest first, each in one transaction with its line
        in the ledger.

        If one of them has no down part, nothing is taken back on that shard. Data that a migration dropped is
        gone.

        Raises:
            InvalidMigrations, UnknownShard: nothing was run on any shard.
        """
        if to < 0:
            raise InvalidMigrations(
                f"the target is {to}", "a migration's number, or 0 for none, is expected", "correct it"
            )
        return self._each(shards, None, lambda run: run.advance(lambda aim: revert_next(aim, to)))

    aplan = threaded(plan)
    astatus = threaded(status)
    amigrate = threaded(migrate)
    adown = threaded(down)

    def _each(
        self,
        names: Names,
        baseline: int | None,
        do: Callable[[ShardRun], ShardReport],
        told: Told | None = None,
    ) -> Report:
        chosen = self._chosen(names)
        migrations = {dialect: self.migrations(dialect) for dialect in {shard.dialect for shard in chosen}}
        for dialect in migrations:
            _check_baseline(baseline, migrations[dialect])
        runs = [self._run(shard, migrations[shard.dialect], baseline, told) for shard in chosen]
        with ThreadPoolExecutor(self._parallel, thread_name_prefix="fencerow-migrator") as threads:
            waiting = [threads.submit(do, run) for run in runs]
            try:
                return Report(tuple(each.result() for each in waiting))
            except BaseException:
                threads.shutdown(wait=False, cancel_futures=True)
                raise

    def _run(
        self, shard: Shard, migrations: Sequence[ShardMigration], baseline: int | None, told: Told | None
    ) -> ShardRun:
        aim = Aim(
            self._ledger,
            shard.dialect,
            migrations,
            holder=str(uuid.uuid4()),
            actor=self._actor,
            lease_s=self._lease_s,
            lock_wait_s=self._lock_wait_s,
            out_of_order=self._out_of_order,
            baseline=baseline,
        )
        return ShardRun(shard, aim, self._wait_s, self._connect_timeout_s, told)

    def _chosen(self, names: Names) -> list[Shard]:
        wanted = set(self._shards) if names is None else {names} if isinstance(names, str) else set(names)
        if unknown := sorted(wanted - set(self._shards)):
            raise UnknownShard(
                f"there is no shard {unknown[0]!r}",
                f"declared are {', '.join(self._shards)}",
                "correct its name",
            )
        return [shard for name, shard in self._shards.items() if name in wanted]


def _check_baseline(baseline: int | None, migrations: Sequence[ShardMigration]) -> None:
    if (
        baseline is not None
        and baseline != 0
        and baseline not in {migration.version for migration in migrations}
    ):
        raise InvalidMigrations(
            f"the baseline {baseline} is no migration",
            f"the migrations are {migrations[0].version} to {migrations[-1].version}",
            "give the number of the last migration that the database has already, or 0 if it has none",
        )
