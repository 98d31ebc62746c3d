"""`@relay_in(app, name, of=...)`: messages of a broker become jobs and events here, each of them once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, TypeVar

from fencerow.core.app.app import JobsApp
from fencerow.core.app.doors import refuse_uncallable
from fencerow.core.errors import DeclarationError
from fencerow.db.text import shown
from fencerow.events.topics import check_own_topic
from fencerow.relay.broker import Place
from fencerow.relay.chore import declared_by
from fencerow.relay.declared import RelayIn, check_name
from fencerow.relay.making import Maker, Making
from fencerow.relay.taker import Gone

F = TypeVar("F", bound=Making)

STARTS = ("end", "beginning")
POLICIES = ("earliest", "latest", "stop")


def relay_in(
    app: JobsApp,
    name: str,
    *,
    of: Place,
    start: Literal["end", "beginning"] = "end",
    when_gone: Gone = "earliest",
    unread_topic: str | None = None,
) -> Callable[[F], F]:
    """Decorate the function that says what a message of a broker comes to here, in this app's workers.

        @relay_in(app, "payments", of=KafkaTopic("kafka:9092", "payments"))
        def payment(message: Message) -> Call[None]:
            return book.call(**message.json())

    It returns a call of a job, a `NewEvent`, several of them, or None, plain or async. It does nothing else: what it
    returns is stored in one transaction with the position behind the message, so it happens once, whatever dies. It may
    be called again for a message that was not stored. If it raises, or what it returns cannot be stored, the message
    goes to those that could not be read (`fencerow relay unread`), and the rest goes on.

    `start`: where a relay begins that was never run. `when_gone`: how it goes on if the broker has removed what it had
    not read, or has lost what it had: with the earliest message there is, with the latest, or not before somebody says
    so (`fencerow relay position`). It is told loudly in each case. `unread_topic`: what cannot be read is published as
    an event there, too.

    Raises:
        MissingExtra: the client of this broker is not installed.
        DeclarationError: the name is taken, or an option cannot be used. InvalidTopic: the topic cannot be.
    """
    declared = declared_by(app)
    relay = check_name(name, declared)
    if start not in STARTS or when_gone not in POLICIES:
        raise DeclarationError(
            f"start is {shown(start)}, when_gone is {shown(when_gone)}",
            f"one of {', '.join(STARTS)}, and one of {', '.join(POLICIES)} are expected",
            "correct them",
        )
    if unread_topic is not None:
        check_own_topic(unread_topic)
    of.check()

    def declare(function: F) -> F:
        refuse_uncallable(function, "@relay_in(...)")
        maker = Maker(app, relay, function, unread_topic)
        declared.inward.append(RelayIn(relay, of, maker, start == "end", when_gone))
        return function

    return declare
