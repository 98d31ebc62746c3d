"""When an operation on PostgreSQL is tried again, and what its caller must assume when it is not: the one policy."""

from __future__ import annotations

import random
from collections.abc import Generator
from dataclasses import dataclass
from typing import Any, TypeVar

import psycopg

from fencerow.db.errors import Busy, DatabaseError, OutcomeUnknown, ReadOnly, Unavailable
from fencerow.db.faults import CONTENTION, connection_lost, ended_idle, first_line, never_began
from fencerow.db.preparing import Preparing
from fencerow.db.run import Operation, Pause

T = TypeVar("T")

TRIES_MAX = 5  # of a unit that lost to contention (deadlock, serialization): it was rolled back for certain


@dataclass(eq=False, slots=True)
class Try:
    """The request to run an operation once. Whoever does sets `committing` when it may be stored from then on."""

    committing: bool = False


def tries(operation: Operation[T], preparing: Preparing) -> Generator[Try | Pause, Any, T]:
    """Try until it is done, or until trying again would be wrong. Each answer is the operation's result, or an error.

    Raises:
        OutcomeUnknown: this try or an earlier one may have been stored.
        Unavailable: the connection broke before anything was.
        Busy: it lost to others too often.
    """
    doubt = False  # whether a try that failed may have been stored
    for number in range(1, TRIES_MAX + 1):
        attempt = Try()
        try:
            result: T = yield attempt
            return result
        except CONTENTION as error:
            if number == TRIES_MAX:
                raise (_doubtful if doubt else _contended)(error, operation.name) from error
        except psycopg.Error as error:
            if (
                (operation.prepared or operation.keeps_plans)
                and number < TRIES_MAX
                and preparing.failed(error)
            ):
                continue
            if never_began(error) and number < TRIES_MAX:
                continue  # whether it may be repeated or not: on another connection
            if not connection_lost(error):
                if doubt:  # the server took nothing of this try, which says nothing of the one before
                    raise _doubtful(error, operation.name) from error
                raise
            doubt = doubt or (attempt.committing and operation.writes != "" and not ended_idle(error))
            _check_repeat(error, operation, doubt, number)
            continue
        except DatabaseError as error:
            if isinstance(error, ReadOnly) and number == 1:
                continue  # on a fresh connection: this one led to what is a standby now
            if doubt:  # this try stored nothing, but the one before may have
                raise _doubtful(error, operation.name) from error
            raise
        yield Pause(random.uniform(0.5, 1.5) * 0.01 * float(2**number))  # noqa: S311 (jitter, not a secret)
    raise AssertionError("unreachable")


def _check_repeat(error: psycopg.Error, operation: Operation[Any], doubt: bool, number: int) -> None:
    """After a broken connection: repeat what may be repeated, else say what the caller must assume."""
    if operation.repeatable and number < 2:
        return
    if doubt:
        raise _doubtful(error, operation.name) from error
    raise Unavailable(
        f"the connection to PostgreSQL broke during {operation.name!r}",
        first_line(error),
        "nothing was stored; repeat it when the server is back",
    ) from error


def _doubtful(error: Exception, name: str) -> OutcomeUnknown:
    return OutcomeUnknown(
        f"the connection broke while {name!r} was being committed",
        f"it may have happened or not ({first_line(error)})",
        "ask by id or key before repeating it",
    )


def _contended(error: psycopg.Error, name: str) -> Busy:
    return Busy(
        f"{name!r} lost to other transactions {TRIES_MAX} times",
        first_line(error),
        "nothing was stored; repeat it, or look for long transactions on the job tables",
    )
