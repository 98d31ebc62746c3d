"""A process that is stopped (SIGSTOP) between two statements of one of our transactions, with its locks in hand."""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

from fencerow.core.store import store
from fencerow.db.postgres import PostgresEngine
from fencerow.db.run import Operation, Steps
from fencerow.events import consumers
from fencerow.events.consumers import PartitionLease
from fencerow.events.sequencer import sequence

FROZEN = "11111111-1111-7111-8111-111111111111"


def stopping(operation: Operation[Any], after: str) -> Operation[Any]:
    """The same operation, by a process that stops, once, when the answer of this statement has come."""

    stops = [True]

    def steps() -> Steps[Any]:
        inner, rows = operation.steps(), None
        try:
            while True:
                statement = inner.send(rows)  # type: ignore[arg-type]
                rows = yield statement
                if statement.name == after and stops:
                    stops.clear()
                    os.kill(os.getpid(), signal.SIGSTOP)
        except StopIteration as done:
            return done.value

    return Operation(operation.name, steps, repeatable=operation.repeatable, writes=operation.writes)


def what(name: str) -> Operation[Any]:
    match name:
        case "sequencer":
            return stopping(sequence(None, wait=False), "try_lock")
        case "taking":
            return stopping(
                consumers.hold_partitions("taken", holder=FROZEN, name="x", lease_s=1.0), "take_cursors"
            )
        case "acknowledging":
            lease = PartitionLease("read", 0, FROZEN, 1, 0)
            return stopping(consumers.advance(lease, old=0, cursor=1), "advance_cursor")
        case _:
            raise AssertionError(name)


if __name__ == "__main__":
    engine = PostgresEngine(sys.argv[1], store.postgres_queries())
    try:
        engine.run(what(sys.argv[2]))
        told = "done"
    except Exception as error:
        told = type(error).__name__
    sys.stdout.write(told)
    sys.stdout.flush()
    os._exit(0)
