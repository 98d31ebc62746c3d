"""How groups and events are shown: the columns of the tables, and the documents for programs."""

from __future__ import annotations

from typing import Any

from fencerow.command.layout import Column
from fencerow.command.times import iso
from fencerow.core.store.decoding import read_or
from fencerow.db.text import kind_and_text
from fencerow.events.asides import Parked
from fencerow.events.consumers import Stored

GROUPS = (
    Column("group", least=16),
    Column("topics", least=12),
    Column("partitions"),
    Column("read"),
    Column("generation", rank=2),
    Column("made", rank=1),
)
LAG = (
    Column("group", least=16),
    Column("events"),
    Column("behind"),
    Column("unplaced", rank=2),
    Column("waiting", rank=1),
    Column("parked"),
    Column("readers"),
    Column("alarm"),
)
PARKED = (
    Column("group", least=12),
    Column("position"),
    Column("topic", least=12),
    Column("key", least=8, rank=1),
    Column("deliveries", rank=2),
    Column("since"),
    Column("error", least=20, folds=True, lines=3),
)


def message(each: Parked) -> str:
    """The error of the last delivery, in a line."""
    error = each.error if isinstance(each.error, dict) else {}
    return kind_and_text(str(error.get("type", "")), str(error.get("message", "")))


def parked_document(each: Parked) -> dict[str, Any]:
    """A parked event for programs."""
    event = None if each.event is None else event_document(each.event)
    return {
        "group": each.group,
        "position": each.seq,
        "parked_at": iso(each.parked_at_us),
        "deliveries": each.event.deliveries if each.event else None,
        "error": each.error,
        "event": event,
    }


def event_document(stored: Stored) -> dict[str, Any]:
    """An event for programs; a position of None: it was not given one yet."""
    return {
        "id": stored.id,
        "position": stored.seq or None,
        "topic": stored.topic,
        "key": stored.key,
        "published_at": iso(stored.published_at_us),
        "headers": None if stored.headers is None else read_or(stored.headers, Any, stored.headers),
        "data": read_or(stored.data, Any, stored.data),
    }
