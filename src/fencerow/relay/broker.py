"""What a relay needs of a broker: one that takes messages, one that gives them, and the message itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

import msgspec

from fencerow.core.answering import answer
from fencerow.core.errors import MalformedPayload
from fencerow.core.model.value import Misfit, ValueType

T = TypeVar("T")

BEGINNING = "<"  # a part that is to begin with the first message that the broker has
END = ">"  # with the first one that comes from now on
UNBEGUN = ""  # as the relay declares it


@answer
@dataclass(frozen=True, slots=True)
class Message:
    """A message as it came from a broker. `data`: its bytes; in a Redis Stream those of the field `data`.

    `position`: the broker's own, an offset or the id of an entry. `headers`: texts; in a Redis Stream the other fields.
    What is no UTF-8 in them is replaced.
    """

    relay: str
    source: str
    part: int
    position: str
    data: bytes
    key: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    after: str = field(default="", repr=False)  # the position once this one is taken

    def json(self) -> Any:
        """The data as JSON.

        Raises:
            MalformedPayload: it is none. The message goes to those that could not be read.
        """
        try:
            return msgspec.json.decode(self.data)
        except (msgspec.DecodeError, RecursionError) as error:
            raise MalformedPayload(
                f"the message {self.position} of {self.source} is no JSON",
                str(error)[:200],
                "see `fencerow relay unread`",
            ) from None

    def read(self, kind: type[T]) -> T:
        """The data, which are JSON, as a value of this type: a dataclass, a struct, a model.

        Raises:
            MalformedPayload: it does not fit.
        """
        try:
            value: T = ValueType.of(kind, "a message").unpack(self.data)
        except Misfit as misfit:
            raise MalformedPayload(
                f"the message {self.position} of {self.source} does not fit: data{misfit.path}: {misfit.reason}",
                f"{kind.__qualname__} is expected",
                "see `fencerow relay unread`",
            ) from None
        return value


@dataclass(frozen=True, slots=True)
class Outgoing:
    """What a broker is to take. `headers`: who receives it twice knows it by `fencerow-id`."""

    key: str | None
    data: bytes
    headers: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Reading:
    """Some messages of a part in order, and how many the broker has behind them; None: it did not say this time.

    `position`: where the part stands after them.
    """

    messages: Sequence[Message]
    position: str
    lag: int | None = None


class Sender(Protocol):
    """Takes messages for a broker. Made on the event loop that uses it.

    `takes_as_a_whole`: of several messages, none behind one that failed is taken, unless that one is a BrokerRefused.
    """

    @property
    def takes_as_a_whole(self) -> bool: ...

    async def send(self, messages: Sequence[Outgoing]) -> Sequence[Exception | None]:
        """Hand them over in order; returns once the broker has said of each whether it has it: None, or why not.

        BrokerAway: it may have it, or not: send it again. BrokerRefused: it will never take this one. What else is told
        of one among several says nothing of this one: send it again alone.

        Raises:
            BrokerAway: as above, of all of them.
        """
        ...

    async def close(self) -> None: ...


class Source(Protocol):
    """Gives the messages of a broker by their positions. Remembers nothing that counts."""

    async def parts(self) -> int:
        """How many parts there are.

        Raises:
            BrokerAway: it does not say.
        """
        ...

    async def begin(self, part: int, *, at_end: bool) -> str:
        """The position before the first message it has, or behind the last one.

        Raises:
            BrokerAway: it does not say.
        """
        ...

    async def read(self, part: int, position: str, limit: int) -> Reading:
        """What comes after a position; waits about a second for it.

        Raises:
            BrokerAway: it does not answer. PositionGone: some of it is gone, or it never had this position.
        """
        ...

    async def stored(self, part: int, position: str) -> None:
        """Everything before this position is stored here. For those who look at the broker; may fail in silence."""

    async def close(self) -> None: ...


class Place(Protocol):
    """A broker and what there is meant of it, as an application names it."""

    @property
    def told(self) -> str:
        """Where it is, for people: no password, no user."""
        ...

    def check(self) -> None:
        """Whether it can be used here.

        Raises:
            MissingExtra: its client is not installed. DeclarationError: it names nothing that can be used.
        """

    def sender(self) -> Sender: ...

    def source(self, relay: str) -> Source: ...
