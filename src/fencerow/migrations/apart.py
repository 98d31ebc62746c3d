"""Running a migration outside of a transaction: under a lease in its line of the ledger, renewed while it runs."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from typing import Protocol

from fencerow.db.leases import Belief
from fencerow.db.run import Operation, Steps
from fencerow.db.steady import steady
from fencerow.migrations.advance import Aim, OutsideTransaction, finish, mark_of, renew, session_of
from fencerow.migrations.concurrent import Marked, refuse_another, run_piece, run_plain
from fencerow.migrations.direct import Code, Direct
from fencerow.migrations.errors import ShardBusy

log = logging.getLogger("fencerow.migrator")


class Connect(Protocol):
    """Opens a connection to the shard, under this application name if one is given."""

    def __call__(self, *, session: str | None = None) -> Direct: ...


RENEWALS = 4  # so often within a lease: three may fail before the deadline
LOOK_S = 0.5  # a wait does not count the time during which the machine slept; the belief does
JOIN_S = 5.0  # a renewal that hangs is left to itself: it can do nothing but renew this very attempt


class StepLease:
    """Keeps a migration ours from a thread with a connection of its own; the other one may be busy for hours.

    A second thread waits for the end of the belief, because a renewal may hang: it asks the server to give up what is
    under way, before anybody else may begin.
    """

    def __init__(
        self, connect: Connect, aim: Aim, apart: OutsideTransaction, sent: float, lost: Callable[[], None]
    ) -> None:
        """The migration was taken by a statement that was sent after this `steady()` time."""
        self._connect = connect
        self._aim = aim
        self._apart = apart
        self._lost = lost
        self._stop = threading.Event()
        self._belief = Belief(aim.lease_s, sent)

    @contextmanager
    def kept(self) -> Iterator[None]:
        threads = [
            threading.Thread(target=each, name="fencerow-migrator-lease", daemon=True)
            for each in (self._renew, self._watch)
        ]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self._stop.set()
            for thread in threads:
                thread.join(JOIN_S)

    def check(self) -> None:
        """Refuse to send anything more once somebody else may have taken over.

        Raises:
            ShardBusy: the lease is lost.
        """
        if self.lost:
            raise _lost(self._apart)

    @property
    def lost(self) -> bool:
        """Whether somebody else may have the migration by now."""
        return self._belief.lost

    def _watch(self) -> None:
        while not self._belief.lost:
            if self._stop.wait(min(LOOK_S, self._belief.left_s)):
                return
        self._lost()

    def _renew(self) -> None:
        connection: Direct | None = None
        while not self._stop.wait(self._aim.lease_s / RENEWALS) and not self._belief.lost:
            sent = steady()
            try:
                connection = connection or self._connect()
                if connection.run(renew(self._aim, self._apart, self._aim.lease_s)):
                    self._belief.renewed(sent)
                else:
                    self._belief.lose()
            except Exception as error:
                log.warning("the lease of migration %s was not renewed: %s", self._apart.migration, error)
                if connection is not None:
                    connection.close()
                connection = None
        if connection is not None:
            connection.close()


def run_apart(shard: Direct, connect: Connect, aim: Aim, apart: OutsideTransaction, sent: float) -> int:
    """Run the migration and note it; returns how many statements of it had been done before a crash.

    `sent` is the `steady()` time before the statement that took it. It has a connection of its own: by its name
    whoever takes over sees that the server still works for it, and what it sets there moves no line of the ledger.

    Raises:
        UserFailed: a statement raised. Those before it stay; the migration is left as begun, free to be taken up.
        ShardBusy: the lease was lost on the way. Whoever has it goes on.
    """
    with closing(connect(session=session_of(aim.ledger, apart.migration))) as own:
        lease = StepLease(connect, aim, apart, sent, lambda: _cancel(own))
        adopted = 0
        try:
            with lease.kept():
                for operation in _parts(own, aim, apart):
                    lease.check()
                    adopted += not own.run(operation)
                lease.check()
        except BaseException as error:
            if (
                lease.lost
            ):  # then nothing is ours to give back, and a statement that was given up is no failure
                raise _lost(apart) from error
            with suppress(Exception):  # the first error says more; the lease ends by itself
                shard.run(renew(aim, apart, 0.0))
            raise
    if not shard.run(finish(aim, apart)):
        raise _lost(apart)
    return adopted


def _parts(shard: Direct, aim: Aim, apart: OutsideTransaction) -> Iterator[Operation[bool]]:
    source, function = apart.script.file.name, apart.script.function
    marked = Marked(source, mark_of(aim.ledger, apart.migration))
    if function is not None:

        def call() -> Steps[bool]:
            yield Code("migration", {}, source=source, function=function)
            return True

        yield Operation("migration", call, alone=True)
    for piece in apart.script.pieces:
        if shard.dialect == "postgres":
            if apart.resumed:
                yield refuse_another(piece, marked)
            yield run_piece(piece, marked, resumed=apart.resumed)
        else:
            yield run_plain(piece, marked)


def _cancel(shard: Direct) -> None:
    with suppress(Exception):  # it is asked, no more; the guard of the ledger decides
        shard.cancel()


def _lost(apart: OutsideTransaction) -> ShardBusy:
    return ShardBusy(
        f"migration {apart.migration} may have been taken over by another migrator while it ran here",
        "the lease was not renewed in time",
        "look at the shard's status; the other one goes on",
    )
