"""Publishing events: rows in the publisher's own transaction. Committed is published, rolled back never was.

    publish(app, "order.paid", {"order": 17}, key="customer-4", connection=session)

An event is read by every group that asks for its topic, see `consumers`. Events of one key are delivered in the
order in which their transactions published them, if these took turns: if each had locked what the key stands for (its
row, or an `advisory_lock`) before it published. Then that is the order of their commits. Nothing here takes such a lock
(docs/decisions/0041): an event whose transaction published before it waited keeps its earlier number.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from fencerow.core.errors import InvalidPayload
from fencerow.core.locator import Locator, acheck_tables, check_tables
from fencerow.core.model.labels import encode_headers
from fencerow.core.model.value import PAYLOAD_BYTES_MAX, Misfit, ValueType, check_size
from fencerow.core.model.wakeup import Published, encode
from fencerow.db.run import Operation, Steps, as_int, execute, joining, operation
from fencerow.events.topics import BUCKETS, bucket_of, check_key, check_own_topic
from fencerow.located import arun, run

ANYTHING = ValueType.of(Any, "an event's data")
WAKE_UP = encode(Published())


@dataclass(frozen=True, slots=True)
class NewEvent:
    """An event to be published: see `publish`."""

    topic: str
    data: Any = None
    key: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)


def publish(
    place: Locator,
    topic: str,
    data: Any = None,
    *,
    key: str | None = None,
    headers: Mapping[str, str] | None = None,
    connection: object | None = None,
) -> int:
    """Publish one event and return its id. With `connection` it is part of the transaction that is open there.

    `data` is kept as JSON under the rules of a job's arguments. Events of one `key` stay in order. This is
    the order of the commits if you lock what the key stands for before you publish. Events without a key have
    no order. `headers` are texts that travel along: trace context, correlation id.

    Raises:
        InvalidTopic, InvalidInput: the topic, the key or the headers cannot be used.
        InvalidPayload, PayloadTooLarge: the data cannot be kept.
        Unavailable, Busy, ReadOnly, StorageFull: nothing is stored.
        OutcomeUnknown: the answer was lost, so it may be published. A repeat would be a second event.
    """
    (event_id,) = publish_many(place, [NewEvent(topic, data, key, headers or {})], connection=connection)
    return event_id


async def apublish(
    place: Locator,
    topic: str,
    data: Any = None,
    *,
    key: str | None = None,
    headers: Mapping[str, str] | None = None,
    connection: object | None = None,
) -> int:
    """`publish` for async code."""
    event = NewEvent(topic, data, key, headers or {})
    (event_id,) = await apublish_many(place, [event], connection=connection)
    return event_id


def publish_many(
    place: Locator, events: Sequence[NewEvent], *, connection: object | None = None
) -> list[int]:
    """Publish events in their order, in one statement: all of them or none. Returns their ids.

    With `connection` they are part of the transaction that is open there; one in autocommit is refused. See
    `publish` for what an event may be.

    Raises:
        InvalidTopic, InvalidInput, InvalidPayload, PayloadTooLarge: for the first event that cannot be
            published. Nothing is stored.
        OutcomeUnknown: the answer was lost, so they may be published. A repeat would publish them again.
    """
    appending = append(events)
    check_tables(place)
    ids = run(place, joining(appending, connection), connection)
    if connection is None and ids:
        place.engine.wake([WAKE_UP])
    return ids


async def apublish_many(
    place: Locator, events: Sequence[NewEvent], *, connection: object | None = None
) -> list[int]:
    """`publish_many` for async code."""
    appending = append(events)
    await acheck_tables(place)
    ids = await arun(place, joining(appending, connection), connection)
    if connection is None and ids:
        place.engine.wake([WAKE_UP])
    return ids


def append(events: Sequence[NewEvent]) -> Operation[list[int]]:
    """Write events: an operation, for use inside another (`yield from append([...]).steps()`).

    Raises:
        InvalidTopic, InvalidInput, InvalidPayload, PayloadTooLarge: at once, before anything is sent.
    """
    return _append([_row(event) for event in events])


@operation(alone=True)
def _append(rows: Sequence[_Row]) -> Steps[list[int]]:
    if not rows:
        return []
    found = yield from execute("append_events", events=msgspec.json.encode(rows).decode())
    return [as_int(row[0]) for row in found]


class _Row(msgspec.Struct, frozen=True):
    topic: str
    key: str | None
    bucket: int
    data: str
    headers: str | None
    bytes: int


def _row(event: NewEvent) -> _Row:
    topic, key = check_own_topic(event.topic), check_key(event.key)
    data = _packed(event.data)
    bucket = random.randrange(BUCKETS) if key is None else bucket_of(key)  # noqa: S311 (spreads, hides nothing)
    return _Row(topic, key, bucket, data.decode(), encode_headers(event.headers), len(data))


def _packed(data: Any) -> bytes:
    try:
        raw = ANYTHING.pack(data, "data")
    except Misfit as misfit:
        raise InvalidPayload(
            f"data{misfit.path}: {misfit.reason}",
            f"a {type(data).__name__} was passed",
            "pass what JSON can hold",
        ) from None
    check_size(raw, "the event's data", PAYLOAD_BYTES_MAX)
    return raw
