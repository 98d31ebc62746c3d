"""What messages come to: jobs to submit and events to publish, or the reason why one cannot be read. No I/O of ours."""

from __future__ import annotations

import base64
import inspect
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from fencerow.core.app.app import JobsApp
from fencerow.core.app.calls import Call
from fencerow.core.app.submission import Recipe
from fencerow.core.errors import DeclarationError, FencerowError, InvalidInput
from fencerow.core.model.ids import new_id
from fencerow.core.model.labels import encode_headers
from fencerow.core.model.submission import Submission
from fencerow.db.errors.base import line_of
from fencerow.db.text import clean, said_of
from fencerow.events.outbox import NewEvent, append
from fencerow.relay.broker import Message
from fencerow.relay.parts import Unread
from fencerow.traces.carrying import carried

Made = Call[Any] | NewEvent
What = Made | Iterable[Made] | None
Making = Callable[[Message], What | Awaitable[What]]

RAW_BYTES_MAX: Final = 64 * 1024
ERROR_MAX: Final = 2000
KEY_MAX: Final = 512
SCOPE: Final = "relay"
POSITION: Final = "relay-position"


@dataclass(frozen=True, slots=True)
class Reduced:
    """What one message comes to. `unread`: why it comes to nothing."""

    message: Message
    submissions: Sequence[Submission] = ()
    events: Sequence[NewEvent] = ()
    unread: Unread | None = None


class Maker:
    """Asks the application's function, and makes what is stored of its answer.

    Jobs get the position as their key, unless they have a key or an id of their own: who reads a message again finds
    the job that is there. Jobs and events carry on the trace of the message. `unread_topic`: what cannot be read is an
    event there, too.
    """

    def __init__(self, app: JobsApp, relay: str, function: Making, unread_topic: str | None) -> None:
        self._submitter = app.submits_as(f"relay {relay}")
        self._function = function
        self._unread_topic = unread_topic

    async def reduced(self, message: Message, generation: int) -> Reduced:
        """What this message comes to. Whatever the function raises says that it cannot be read."""
        try:
            found = self._function(message)
            made = _as_list(await found if inspect.isawaitable(found) else found)
            where = place_of(message, generation)
            calls = [_keyed(each, where, message, n) for n, each in enumerate(made) if isinstance(each, Call)]
            ids = [each.recipe.options.id or new_id() for each in calls]
            submissions = self._submitter.as_stored_under(ids, calls) if calls else []
            events = [_carrying(each, where, message) for each in made if isinstance(each, NewEvent)]
            append(events)  # refuses what cannot be published
        except Exception as error:
            return self.unread(message, error)
        return Reduced(message, submissions, events)

    def unread(self, message: Message, error: Exception) -> Reduced:
        """A message that could not be read, with its first bytes and the reason."""
        said = line_of(error) if isinstance(error, FencerowError) else said_of(error)
        raw = base64.b64encode(message.data[:RAW_BYTES_MAX]).decode()
        kept = Unread(
            message.position,
            _storable(message.key),
            _headers(message),
            raw,
            len(message.data),
            clean(said)[:ERROR_MAX],
        )
        return Reduced(message, events=self._told(message, kept), unread=kept)

    def _told(self, message: Message, kept: Unread) -> list[NewEvent]:
        if self._unread_topic is None:
            return []
        data = {
            "relay": message.relay,
            "source": message.source,
            "part": message.part,
            "position": message.position,
            "error": kept.error,
            "bytes": kept.bytes,
            "raw": kept.raw,
        }
        return [NewEvent(self._unread_topic, data, kept.key, carried(_storable_headers(message)))]


def place_of(message: Message, generation: int) -> str:
    """The position of a message, as it stands in keys and headers: the same for no other one."""
    return f"{message.relay}/{generation}/{message.source}/{message.part}/{message.position}"


def _as_list(found: object) -> list[Made]:
    if found is None:
        return []
    if isinstance(found, Call | NewEvent):
        return [found]
    if isinstance(found, Iterable) and not isinstance(found, str | bytes | dict):
        made = list(found)
        if all(isinstance(each, Call | NewEvent) for each in made):
            return made
    raise DeclarationError(
        f"the function of a relay returned a value of type {type(found).__name__}",
        "calls, events, several of them, or None are expected",
        "return job.call(...), NewEvent(...), a list of them, or None where a message means nothing",
    )


def _keyed(call: Call[Any], where: str, message: Message, number: int) -> Call[Any]:
    options = call.recipe.options
    if options.connection is not None:
        raise InvalidInput(
            "a call of a relay names a connection", "the relay has its own", "leave connection= out"
        )
    headers = {**carried(_storable_headers(message)), **options.headers}
    if options.key is None and options.id is None:
        key = where if number == 0 else f"{where}/{number}"
        options = replace(options, key=key, scope=options.scope or SCOPE)
    options = replace(options, headers=headers)
    return Call(Recipe(call.recipe.declaration, options), call.args)


def _carrying(event: NewEvent, where: str, message: Message) -> NewEvent:
    headers = {**carried(_storable_headers(message)), POSITION: where, **event.headers}
    return replace(event, headers=headers)


def _storable_headers(message: Message) -> dict[str, str]:
    return {name: clean(value)[:KEY_MAX] for name, value in message.headers.items()}


def _headers(message: Message) -> str | None:
    """All headers, or none where they are too large or odd to be kept."""
    try:
        return encode_headers(_storable_headers(message))
    except FencerowError:
        return None


def _storable(key: str | None) -> str | None:
    return None if not key else clean(key)[:KEY_MAX]
