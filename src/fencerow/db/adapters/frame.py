"""How an operation stands inside somebody else's transaction: what is sent before it, after it, and when it fails.

Everything here is one generator of texts, for sync and async connections alike: a connection
only says how it stands and sends what it is given.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, TypeVar

from fencerow.db.errors import FencerowError, OutcomeUnknown, Unavailable, UnusableConnection
from fencerow.db.queries import Queries, Query
from fencerow.db.run import Operation, Rows, Statement

T = TypeVar("T")

SAVEPOINT = "fencerow_operation"


class ConnectionStanding(Enum):
    """How the user's connection stands before our operation."""

    ALONE = "no transaction, and the driver begins none: we begin one and commit it"
    FRESH = "no transaction yet: the driver's next statement begins the user's own, which the user commits"
    OPEN = "the user's transaction: we work inside a savepoint, so that a failure of ours costs only our part"


@dataclass(frozen=True, slots=True)
class SentText:
    """One text for the driver: a statement of ours, or a `command` of the transaction, which has no rows.

    `users` is the query if it was composed for a user's own table, see `Query.users`.
    """

    text: str
    params: Mapping[str, Any] = field(default_factory=dict[str, Any])
    parameters: tuple[str, ...] = ()
    command: bool = False
    users: Query | None = None


def named(sent: SentText, names: Sequence[str], rows: Rows) -> Rows:
    """The rows of a text, after the names of their columns if it is a user's."""
    return rows if sent.users is None else sent.users.with_names(names, rows)


@dataclass(frozen=True, slots=True)
class Frame:
    """What stands around an operation."""

    before: tuple[str, ...]
    after: tuple[str, ...]
    undo: tuple[str, ...]


NOTHING = Frame((), (), ())
WHOLE = Frame(("BEGIN",), ("COMMIT",), ("ROLLBACK",))
INSIDE = Frame(
    (f"SAVEPOINT {SAVEPOINT}",),
    (f"RELEASE SAVEPOINT {SAVEPOINT}",),
    (f"ROLLBACK TO SAVEPOINT {SAVEPOINT}", f"RELEASE SAVEPOINT {SAVEPOINT}"),
)

Plan = Generator[SentText, Rows, T]


class Lent(ABC):
    """A connection that the user lends us: it says how it stands and sends texts, sync or async."""

    queries: Queries

    @abstractmethod
    def standing(self) -> ConnectionStanding:
        """How it stands, without asking the database.

        Raises:
            UnusableConnection: it is closed, busy or in a failed transaction. Nothing was sent.
            ReadOnly: it was declared read-only.
        """

    def is_open(self) -> bool:
        """Whether a transaction of the user's is open. Asks nobody, and begins none.

        Raises:
            UnusableConnection: it is closed, busy or in a failed transaction.
        """
        return self.standing() is ConnectionStanding.OPEN

    @abstractmethod
    def send(self, sent: SentText) -> Any:
        """Send one text and return its rows (an awaitable of them on an async connection)."""

    @abstractmethod
    def frame(self, operation: Operation[Any], standing: ConnectionStanding) -> Frame:
        """What stands around this operation."""

    @abstractmethod
    def fault(self, error: BaseException, standing: ConnectionStanding) -> FencerowError | None:
        """Which of our errors a driver's error is, if any; None leaves it as it is."""

    def check(self) -> Plan[None]:
        """Ask the database whether this is the connection it should be. By default there is nothing to ask."""
        yield from ()

    def plan(self, operation: Operation[T]) -> Plan[T]:
        """Everything that is sent for one operation."""
        standing = self.standing()
        if operation.inside and standing is ConnectionStanding.ALONE:
            raise no_transaction(operation.name)
        with self._translated(standing):
            yield from self.check()
            frame = self.frame(operation, standing)
            yield from _begin(frame)
            try:
                result = yield from self.body(operation)
                for text in frame.after:
                    yield SentText(text, command=True)
            except BaseException as error:
                yield from _undo(frame, error)
                raise
        return result

    def body(self, operation: Operation[T]) -> Plan[T]:
        """The operation itself."""
        steps = operation.steps()
        try:
            statement = next(steps)
            while True:
                statement = steps.send((yield from self.statement(statement)))
        except StopIteration as done:
            return done.value  # type: ignore[no-any-return]
        finally:
            steps.close()

    def statement(self, statement: Statement) -> Plan[Rows]:
        """One named query, and all its rows."""
        rows: Rows = []
        for sent in self.written(statement):
            rows += yield sent
        return rows

    def written(self, statement: Statement) -> Iterator[SentText]:
        """A named query as texts."""
        query = self.queries.of(statement)
        for text in query.statements:
            yield SentText(text, statement.params, query.parameters, users=query if query.users else None)

    @contextmanager
    def _translated(self, standing: ConnectionStanding) -> Iterator[None]:
        try:
            yield
        except FencerowError:
            raise
        except Exception as error:
            known = self.fault(error, standing)
            if known is None:
                raise
            raise known from error


def no_transaction(name: str) -> UnusableConnection:
    """What lasts as long as a transaction was asked for where none is open."""
    return UnusableConnection(
        f"no transaction is open on this connection (it is in autocommit), and {name.strip('_')!r} must be part of one",
        "with connection= it is committed or undone together with your own work",
        "open a transaction first (BEGIN, or leave autocommit), or leave connection= out to have it stored at once",
    )


def closed(kind: str) -> UnusableConnection:
    """The connection passed in is closed."""
    return UnusableConnection(f"the {kind} is closed", "it must be open", "open a new one")


def failed(kind: str) -> UnusableConnection:
    """The connection passed in is in a failed transaction."""
    return UnusableConnection(
        f"the {kind} is in a failed transaction",
        "an earlier statement failed, and PostgreSQL refuses all others until the rollback",
        "roll back and run your transaction again",
    )


def busy(kind: str) -> UnusableConnection:
    """The connection passed in is in the middle of another statement."""
    return UnusableConnection(
        f"the {kind} is in the middle of another statement",
        "an unfinished query, COPY or pipeline of yours",
        "finish it (leave the pipeline) first, or use another connection",
    )


def lost(standing: ConnectionStanding, error: BaseException) -> FencerowError:
    """The lent connection broke under our operation."""
    text = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
    if standing is ConnectionStanding.ALONE:
        return OutcomeUnknown(
            "your connection broke during the operation",
            text,
            "it may have happened; ask by id or key before repeating",
        )
    return Unavailable(
        "your connection broke inside your transaction",
        text,
        "the database rolled it back; run it again on a new connection",
    )


def _begin(frame: Frame) -> Plan[None]:
    try:
        for text in frame.before:
            yield SentText(text, command=True)
    except Exception:
        raise  # refused: there is nothing to take back
    except BaseException as error:
        yield from _undo(frame, error)  # cancelled: it may have happened
        raise


def _undo(frame: Frame, error: BaseException) -> Plan[None]:
    """Take our part back. What fails here says less than the error that led here, so it only becomes a note."""
    try:
        for text in frame.undo:
            yield SentText(text, command=True)
    except Exception as second:
        error.add_note(f"taking our part of the transaction back failed too: {second}")
