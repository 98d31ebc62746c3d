"""Instants as callers give them: aware datetimes. Inside they are microseconds since 1970 everywhere."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from fencerow.core.errors import InvalidInput
from fencerow.core.model.job import EPOCH

LATEST = datetime(9999, 12, 30, tzinfo=UTC)  # what the tables take, in whatever zone it is read


def instant_us(moment: object, what: str) -> int:
    """An aware datetime as microseconds since 1970.

    Raises:
        InvalidInput: it is naive, no datetime, before 1970, or at the end of all time.
    """
    if not isinstance(moment, datetime):
        raise InvalidInput(
            f"{what} is of type {type(moment).__name__}", "a datetime is expected", "pass a datetime"
        )
    if moment.tzinfo is None or moment.utcoffset() is None:
        raise InvalidInput(
            f"{what} is {moment.isoformat()}, which names no time zone",
            "without a time zone the text means another instant on each host",
            "pass an aware datetime, such as datetime.now(UTC), or delay_s",
        )
    if moment < EPOCH:
        raise InvalidInput(
            f"{what} is {moment.isoformat()}", "instants from 1970 on can be stored", "pass a later one"
        )
    if moment > LATEST:
        raise InvalidInput(
            f"{what} is {moment.isoformat()}",
            f"instants until {LATEST:%Y-%m-%d} can be stored",
            "pass an earlier one",
        )
    return (moment - EPOCH) // timedelta(microseconds=1)
