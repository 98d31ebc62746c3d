"""A Redis Stream by redis-py: entries are added and read by their ids. No consumer group is read by.

A position is the id of the last entry that was taken and, behind a `#`, how many entries were ever added up to it.
Redis (7.0) says how many it has added in all and how many it still has, so what was removed unread can be counted:
only when no entry up to our position is left can entries behind it have been removed from the front, and then all that
is removed beyond our number was not read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import redis.asyncio as redis
from redis.backoff import NoBackoff
from redis.exceptions import RedisError, ResponseError
from redis.retry import Retry

from fencerow.db.text import said_of
from fencerow.relay.broker import Message, Outgoing, Reading
from fencerow.relay.errors import BrokerAway, BrokerRefused, PositionGone

CONNECT_S: Final = 5.0
ANSWER_S: Final = 15.0
BLOCK_MS: Final = 1000
DATA: Final = "data"
KEY: Final = "fencerow-key"
START: Final = "0-0"
# What the server says of the whole stream or of itself; redis-py has classes for most of the others.
AWAY_CODES: Final = ("WRONGTYPE", "MISCONF", "NOREPLICAS", "UNKILLABLE", "BUSY", "NOGOODSLAVE")
TOO_LARGE: Final = ("bulk length", "too big", "too large", "exceeds maximum")


def connected(url: str) -> redis.Redis:
    """A client that tries nothing again by itself: a relay does, and says so."""
    return redis.Redis.from_url(
        url,
        socket_connect_timeout=CONNECT_S,
        socket_timeout=ANSWER_S,
        retry=Retry(NoBackoff(), 0),
        health_check_interval=0,
    )


def away(error: BaseException, doing: str) -> BrokerAway:
    """What a relay is told."""
    return BrokerAway(
        f"the Redis server cannot be {doing}", said_of(error)[:300], "it is tried again; see to the server"
    )


def is_away(error: BaseException) -> bool:
    """Whether it is the server that is not there, or not as it should be, and not one message that it does not like.

    An answer that was cut says nothing of the message, and a kind of error that redis-py has a class for says something
    of the server: no login, no permission, no memory, read-only, loading.
    """
    return type(error) is not ResponseError or str(error).startswith(AWAY_CODES)


class RedisSender:
    """Adds entries to a stream. Several go in one transaction of the server: no state of the server, such as full
    memory, can refuse one of them and take what is behind it."""

    takes_as_a_whole = True

    def __init__(self, url: str, stream: str, maxlen: int | None) -> None:
        self._client = connected(url)
        self._stream = stream
        self._maxlen = maxlen

    async def send(self, messages: Sequence[Outgoing]) -> Sequence[Exception | None]:
        """Add entries; the answer says that the server has them, as safely as the server's `appendfsync` says."""
        try:
            if len(messages) == 1:
                await self._add(self._client, messages[0])
                return [None]
            async with self._client.pipeline(transaction=True) as several:
                for each in messages:
                    self._add(several, each)
                answers = await several.execute(raise_on_error=False)
        except (RedisError, OSError) as error:
            if is_away(error):
                raise away(error, "written to") from error
            return [_meant(error) if len(messages) == 1 else error] * len(messages)
        return each_told(answers)

    def _add(self, client: Any, message: Outgoing) -> Any:
        fields: dict[Any, Any] = {DATA: message.data, **message.headers}
        return client.xadd(self._stream, fields, maxlen=self._maxlen, approximate=True)

    async def close(self) -> None:
        await self._client.aclose()


def _meant(error: Exception) -> Exception:
    """What the refusal of one entry means. An unknown one is tried as often as an event is, and then parked."""
    if any(each in str(error) for each in TOO_LARGE):
        return _refused(error)
    return error


def _refused(error: Exception) -> BrokerRefused:
    return BrokerRefused("the Redis server refuses the entry", said_of(error)[:300], "the event is parked")


def each_told(answers: Sequence[Any]) -> Sequence[Exception | None]:
    """What became of each entry of a transaction. One that was refused while another behind it went in is refused for
    good: added later it would come out of order."""
    last = max((at for at, each in enumerate(answers) if not isinstance(each, Exception)), default=-1)
    told: list[Exception | None] = []
    for at, each in enumerate(answers):
        if not isinstance(each, Exception):
            told.append(None)
        elif at < last:
            told.append(_refused(each))
        else:
            told.append(away(each, "written to") if is_away(each) else each)
    return told


class RedisSource:
    """Reads a stream, which is one part."""

    def __init__(self, url: str, stream: str, group: str | None, relay: str) -> None:
        self._client = connected(url)
        self._stream = stream
        self._group = group
        self._relay = relay
        self._is_group_made = False

    async def parts(self) -> int:
        return 1

    async def begin(self, part: int, *, at_end: bool) -> str:  # noqa: ARG002 - there is one
        try:
            seen = _Seen.of(await self._client.xinfo_stream(self._stream))
        except (RedisError, OSError) as error:
            if _is_missing(error):
                return position_of(START, 0)
            raise away(error, "read") from error
        if at_end:
            return _end_of(seen)
        # What was removed before anybody read is nobody's loss.
        return position_of(START, None if seen.added is None else seen.added - seen.length)

    async def read(self, part: int, position: str, limit: int) -> Reading:
        """Entries behind a position, with a look at the whole stream of the same instant.

        Raises:
            BrokerAway, PositionGone: as every source.
        """
        last, count = split(position)
        try:
            seen, entries = await self._look(last, limit)
            if not entries:
                await self._client.xread({self._stream: last}, count=1, block=BLOCK_MS)
                seen, entries = await self._look(last, limit)
        except (RedisError, OSError) as error:
            raise away(error, "read") from error
        _check_there(self._stream, last, count, seen)
        messages, after, number = [], last, count
        for entry, fields in entries:
            after = _text(entry)
            number = None if number is None else number + 1
            if after == seen.last and seen.added is not None:
                number = seen.added
            messages.append(self._message(part, after, fields, position_of(after, number)))
        if after == seen.last and seen.added is not None:
            number = seen.added
        lag = None if number is None or seen.added is None else max(0, seen.added - number)
        return Reading(messages, messages[-1].after if messages else position, lag)

    async def stored(self, part: int, position: str) -> None:  # noqa: ARG002 - there is one
        if self._group is None:
            return
        try:
            last = split(position)[0]
            if self._is_group_made:
                await self._client.xgroup_setid(self._stream, self._group, last)
            else:
                await self._client.xgroup_create(self._stream, self._group, last)
        except ResponseError:
            pass  # it is there already, or the stream is not: the next time says more
        except (RedisError, OSError):
            return  # nothing hangs on it
        self._is_group_made = True

    async def close(self) -> None:
        await self._client.aclose()

    async def _look(self, last: str, limit: int) -> tuple[_Seen, list[Any]]:
        async with self._client.pipeline(transaction=True) as both:
            both.xinfo_stream(self._stream)  # type: ignore[unused-awaitable]
            both.xrange(self._stream, min=f"({last}", count=limit)  # type: ignore[unused-awaitable]
            info, entries = await both.execute(raise_on_error=False)
        for answer in (info, entries):
            if isinstance(answer, Exception) and not _is_missing(answer):
                raise answer
        if isinstance(info, Exception):
            return _Seen(START, 0, 0, None), []
        return _Seen.of(info), entries

    def _message(self, part: int, entry: str, fields: Mapping[bytes, bytes] | None, after: str) -> Message:
        named = {_text(name): value for name, value in (fields or {}).items()}
        data = named.pop(DATA, b"")
        headers = {name: _text(value) for name, value in named.items()}
        return Message(self._relay, self._stream, part, entry, data, headers.get(KEY), headers, after=after)


class _Seen:
    """A stream at one instant: the last id, how many entries were ever added and how many are there, the first id."""

    def __init__(self, last: str, added: int | None, length: int, first: str | None) -> None:
        self.last, self.added, self.length, self.first = last, added, length, first

    @staticmethod
    def of(info: Mapping[Any, Any]) -> _Seen:
        first = info.get("first-entry")
        return _Seen(
            _text(info["last-generated-id"]),
            info.get("entries-added"),
            int(info["length"]),
            None if not first else _text(first[0]),
        )


def _check_there(stream: str, last: str, count: int | None, seen: _Seen) -> None:
    """Whether everything behind a position is still there.

    Raises:
        PositionGone: it is not, or this is another stream than the one that was read.
    """
    if numbers(seen.last) < numbers(last):
        raise _made_anew(stream, f"its last entry is {seen.last}, and {last} was read", seen)
    if (
        count is None
        or seen.added is None
        or (seen.first is not None and numbers(seen.first) <= numbers(last))
    ):
        return
    removed = seen.added - seen.length
    if removed < count:
        raise _made_anew(stream, f"{seen.added} entries were ever added, and {count} were read", seen)
    if removed > count:
        raise PositionGone(
            f"{removed - count} entries of the stream {stream} were removed before they were read",
            f"it was trimmed or cut behind {last}",
            "let it keep more, or run more workers; `fencerow relay list` counts them",
            gone=removed - count,
            earliest=position_of(last, removed),
            latest=_end_of(seen),
        )


def _made_anew(stream: str, why: str, seen: _Seen) -> PositionGone:
    return PositionGone(
        f"the stream {stream} is not the one that was read",
        f"{why}: it was removed and made anew, or the server has lost what it had",
        "see to the server's persistence",
        earliest=position_of(START, 0),
        latest=_end_of(seen),
        anew=True,
    )


def _end_of(seen: _Seen) -> str:
    return position_of(seen.last, seen.added)


def position_of(entry: str, count: int | None) -> str:
    return entry if count is None else f"{entry}#{count}"


def split(position: str) -> tuple[str, int | None]:
    entry, _, count = position.partition("#")
    return entry, int(count) if count else None


def numbers(entry: str) -> tuple[int, int]:
    """An id as what it is compared by."""
    time, _, number = entry.partition("-")
    return int(time), int(number or 0)


def _is_missing(error: BaseException) -> bool:
    return isinstance(error, ResponseError) and "no such key" in str(error)


def _text(given: Any) -> str:
    return given.decode("utf-8", "replace") if isinstance(given, bytes) else str(given)
