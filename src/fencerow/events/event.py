"""`Event`: what a consumer's handler is given."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from functools import cached_property
from typing import Any, TypeVar, overload

import msgspec

from fencerow.core.answering import answer
from fencerow.core.errors import MalformedPayload
from fencerow.core.model.job import moment
from fencerow.core.model.packing import PLAIN, Packing
from fencerow.core.model.value import Misfit, ValueType
from fencerow.db.engine import Engine
from fencerow.db.run import Operation
from fencerow.events.consumers import Stored
from fencerow.events.ends import plain_data
from fencerow.events.transaction import EventTransaction

T = TypeVar("T")


@answer
class Event:
    """One delivery of an event to one group.

    A handler that returns acknowledges the event. If it raises, the event is delivered again or parked, by
    the consumer's rule. An event may come twice if a process ends in between: make the handler repeatable, or
    write its effects in `transaction()`.
    """

    def __init__(
        self,
        stored: Stored,
        group: str,
        engine: Engine,
        acknowledge: Operation[None],
        *,
        is_async: bool,
        idle_s: float,
        packing: Packing = PLAIN,
    ) -> None:
        self._stored = stored
        self._engine = engine
        self._acknowledge = acknowledge
        self._is_async = is_async
        self._idle_s = idle_s
        self._packing = packing
        self._transaction: EventTransaction[Any] | None = None
        self.group = group

    def __repr__(self) -> str:
        return f"<Event {self.topic} {self.id} for {self.group}>"

    @property
    def id(self) -> int:
        """The event's number, the same in every delivery and for every group: a good idempotency key."""
        return self._stored.id

    @property
    def position(self) -> int:
        """Its number in the log, by which `replay` counts. Later events of its key have greater positions."""
        return self._stored.seq

    @property
    def topic(self) -> str:
        """What it was published under, such as `order.paid`."""
        return self._stored.topic

    @property
    def key(self) -> str | None:
        """Events of one key are delivered in order."""
        return self._stored.key

    @cached_property
    def data(self) -> Any:
        """What was published, as JSON data. `read` gives it a type.

        Raises:
            SealKeyUnknown: it has the result of a job, under a key that this app has not.
            PayloadAltered: that is not what the job returned.
        """
        return msgspec.json.decode(self._plain)

    def read(self, kind: type[T]) -> T:
        """The data as a value of this type: a dataclass, a struct, a model.

        Raises:
            MalformedPayload: it does not fit.
            SealKeyUnknown, PayloadAltered: as for `data`.
        """
        try:
            value: T = ValueType.of(kind, "an event's data").unpack(self._plain)
        except Misfit as misfit:
            raise MalformedPayload(
                f"the data of event {self.id} ({self.topic}) does not fit: data{misfit.path}: {misfit.reason}",
                f"{kind.__qualname__} is expected",
                "read it as the type that its publisher wrote",
            ) from None
        return value

    @property
    def raw(self) -> bytes:
        """The data as JSON in bytes, as they were published.

        Raises:
            SealKeyUnknown, PayloadAltered: as for `data`.
        """
        return self._plain

    @cached_property
    def _plain(self) -> bytes:
        return plain_data(self._stored, self._packing)

    @cached_property
    def headers(self) -> Mapping[str, str]:
        """Texts that travel beside the data: trace context, correlation id."""
        text = self._stored.headers
        return {} if text is None else msgspec.json.decode(text, type=dict[str, str])

    @property
    def published_at(self) -> datetime:
        """When it was written, by the database's clock; its transaction committed later."""
        return moment(self._stored.published_at_us)

    @property
    def delivery(self) -> int:
        """The number of this delivery, from 1. A delivery that was lost with its process may not be counted."""
        return self._stored.deliveries + 1

    @overload
    def transaction(self) -> EventTransaction[Any]: ...

    @overload
    def transaction(self, *, session: Callable[[], T]) -> EventTransaction[T]: ...

    @overload
    def transaction(self, *, session: T) -> EventTransaction[T]: ...

    def transaction(self, *, session: object | None = None) -> EventTransaction[Any]:
        """A transaction whose commit also acknowledges the event: `async with event.transaction() as connection`.

        What you write through the connection happens exactly once. The end of the block commits it: keep the
        block short, and let the handler do nothing after it. Plain handlers write `with`.

        `session`: your SQLAlchemy `async_sessionmaker` (in a plain handler a `sessionmaker`), any function that makes
        a session, or a new session. The block gives the session, as that of `Job.transaction` does.

        Raises:
            PartitionLost: at the end of the block, when another reader has taken over: all is rolled back.
            EventTransactionMisuse: it was entered before, or the session was committed, rolled back or closed by the
                handler.
            UnusableConnection: the session is of the wrong kind, in use, in autocommit, or on another database.
                Nothing was written.
        """
        self._transaction = self._transaction or EventTransaction(
            self._engine, self._acknowledge, is_async=self._is_async, idle_s=self._idle_s, given=session
        )
        return self._transaction

    @property
    def acknowledged(self) -> bool:
        """Whether its transaction was committed."""
        return self._transaction is not None and self._transaction.acknowledged
