"""Running a step outside of a transaction: under a lease in its line of the ledger, renewed while it runs."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from fencerow.db.direct import Code, Direct
from fencerow.db.statement import Operation, Steps
from fencerow.errors import ShardBusy
from fencerow.primitives.migrator.advance import Aim, Apart, finish, mark_of, renew
from fencerow.primitives.migrator.concurrent import Marked, run_piece, run_plain

log = logging.getLogger("fencerow.migrator")

Connect = Callable[[], Direct]


class Lease:
    """Keeps a step ours from a thread with a connection of its own; the step's connection may be busy for hours."""

    def __init__(self, connect: Connect, aim: Aim, apart: Apart, lost: Callable[[], None]) -> None:
        self._connect = connect
        self._aim = aim
        self._apart = apart
        self._lost = lost
        self._stop = threading.Event()
        self._until = time.monotonic() + aim.lease_s
        self._thread = threading.Thread(target=self._renew, name="fencerow-migrator-lease", daemon=True)

    @contextmanager
    def kept(self) -> Iterator[None]:
        self._thread.start()
        try:
            yield
        finally:
            self._stop.set()
            self._thread.join()

    def check(self) -> None:
        """Refuse to send anything more once somebody else may have taken over.

        Raises:
            ShardBusy: the lease is lost.
        """
        if time.monotonic() > self._until:
            raise _lost(self._apart)

    def _renew(self) -> None:
        connection: Direct | None = None
        while not self._stop.wait(self._aim.lease_s / 3):
            asked = time.monotonic()
            try:
                connection = connection or self._connect()
                kept = connection.run(renew(self._aim, self._apart, self._aim.lease_s))
            except Exception as error:
                log.warning("the lease of step %s was not renewed: %s", self._apart.step, error)
                if connection is not None:
                    connection.close()
                connection = None
                kept = time.monotonic() < self._until
            else:
                self._until = asked + self._aim.lease_s if kept else 0.0
            if not kept:
                self._until = 0.0
                self._lost()
                break
        if connection is not None:
            connection.close()


def run_apart(shard: Direct, connect: Connect, aim: Aim, apart: Apart) -> int:
    """Run the step and note it; returns how many statements of it had been done before a crash.

    Raises:
        UserFailed: a statement raised. Those before it stay; the step is left as begun, free to be taken up.
        ShardBusy: the lease was lost on the way. Whoever has it goes on.
    """
    lease = Lease(connect, aim, apart, lambda: _cancel(shard))
    adopted = 0
    try:
        with lease.kept():
            for operation in _parts(shard, aim, apart):
                lease.check()
                adopted += not shard.run(operation)
            lease.check()
    except BaseException:
        with suppress(Exception):  # the first error says more; the lease ends by itself
            shard.run(renew(aim, apart, 0.0))
        raise
    if not shard.run(finish(aim, apart)):
        raise _lost(apart)
    return adopted


def _parts(shard: Direct, aim: Aim, apart: Apart) -> Iterator[Operation[bool]]:
    source, function = apart.script.file.name, apart.script.function
    marked = Marked(source, mark_of(aim.ledger, apart.step))
    if function is not None:

        def call() -> Steps[bool]:
            yield Code("step", {}, None, source, function)
            return True

        yield Operation("step", call, alone=True)
    for piece in apart.script.pieces:
        if shard.dialect == "postgres":
            yield run_piece(piece, marked, resumed=apart.resumed)
        else:
            yield run_plain(piece, marked)


def _cancel(shard: Direct) -> None:
    with suppress(Exception):  # it is asked, no more; the guard of the ledger decides
        shard.cancel()


def _lost(apart: Apart) -> ShardBusy:
    return ShardBusy(
        f"step {apart.step} was taken over by another migrator while it ran here",
        "the lease was not renewed in time",
        "look at the shard's status; the other one goes on",
    )
