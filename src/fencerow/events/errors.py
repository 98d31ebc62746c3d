"""Errors of events: publishing, groups and their readers (73x, 74x)."""

from __future__ import annotations

from fencerow.db.errors.base import FencerowError


class InvalidTopic(FencerowError):
    """A topic, a pattern of topics, or the name of a group cannot be used. Nothing was stored."""

    code = "FR-730"


class UnknownGroup(FencerowError):
    """No group of that name reads the events of this database; the closest names are in `why`."""

    code = "FR-731"


class GroupMismatch(FencerowError):
    """A group exists with another number of partitions than its consumer declares. It was left as it is."""

    code = "FR-732"


class PartitionLost(FencerowError):
    """This reader no longer holds the event's partition: the acknowledgement changed nothing, and what was in its
    transaction was rolled back. The event is delivered again, elsewhere."""

    code = "FR-733"


class EventTransactionMisuse(FencerowError):
    """`event.transaction()` was entered twice, or in the wrong way for its handler, or ended by hand."""

    code = "FR-734"


class EventNotFound(FencerowError):
    """There is no such event: it was never published, has no position yet, or was removed by retention."""

    code = "FR-735"


class DeliveryTimeout(FencerowError, TimeoutError):
    """A consumer's handler ran longer than its `timeout_s`. It counts as a failed delivery."""

    code = "FR-736"
