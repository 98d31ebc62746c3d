"""`Relays`: looks at relays and steers them, for operators and programs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import fencerow.relay.relays as relays
from fencerow.core.client.base import Verbs
from fencerow.core.errors import InvalidInput
from fencerow.core.verb import averb, verb
from fencerow.db.run import Procedure, ask
from fencerow.db.text import check_text, shown
from fencerow.events.lag import lags
from fencerow.relay.broker import BEGINNING, END
from fencerow.relay.errors import UnknownRelay
from fencerow.relay.outward import GROUP
from fencerow.relay.relays import Kept, Part, Relay

REDIS: Final = re.compile(r"\d{1,19}-\d{1,19}")
KAFKA: Final = re.compile(r"\d{1,18}")
REASON_MAX: Final = 500
ENDS: Final = {"beginning": BEGINNING, "end": END}


class Relays(Verbs):
    """The relays that were ever run in a database: `Relays(app.client).known()`.

    Every verb has an async twin with an `a` before its name.
    """

    @verb
    def known(self, relay: str | None = None) -> Procedure[Sequence[Relay]]:
        """All relays, or this one: where each leads, who runs it, what keeps it from going on, how far it is behind.

        The lag of one that sends is that of its group on the bus, in events.
        """
        found = yield from ask(relays.listed(relay))
        behind = {each.group: each for each in (yield from ask(lags()))} if found else {}
        return [_with_lag(each, behind.get(GROUP + each.name)) for each in found]

    aknown = averb(known)

    @verb
    def parts(self, relay: str) -> Procedure[Sequence[Part]]:
        """The parts of a relay that takes: where each stands, who reads it.

        Raises:
            UnknownRelay: there is none of that name.
        """
        return (yield from ask(relays.parts_of(relay)))

    aparts = averb(parts)

    @verb
    def pause(self, relay: str, *, reason: str | None = None) -> Procedure[bool]:
        """Let a relay rest; false: it rests already. Workers see it within two seconds, and lose nothing meanwhile.

        Raises:
            UnknownRelay: there is none of that name.
        """
        said = None if reason is None else check_text(reason, "the reason", REASON_MAX)
        return (yield from ask(relays.pause(relay, said)))

    apause = averb(pause)

    @verb
    def resume(self, relay: str) -> Procedure[bool]:
        """Let a relay go on; false: it does not rest.

        Raises:
            UnknownRelay: there is none of that name.
        """
        return (yield from ask(relays.resume(relay)))

    aresume = averb(resume)

    @verb
    def move(self, relay: str, part: int, position: str, *, again: bool = False) -> Procedure[None]:
        """Let a part of a relay that takes go on at a position: "beginning", "end", the offset of the next message, or
        the id of the last entry that counts as read. One that has stopped goes on.

        Jobs of messages that are read once more are there already: their keys say so. `again`: they are made again.
        Events are published again in any case.

        Raises:
            UnknownRelay: there is no such relay or part. InvalidInput: this is no position of its broker.
        """
        found = yield from ask(relays.listed(relay))
        wanted = _position(found[0] if found else None, relay, position)
        yield from ask(relays.set_position(relay, part, wanted, again=again))

    amove = averb(move)

    @verb
    def unread(self, relay: str | None = None, *, limit: int = 50) -> Procedure[Sequence[Kept]]:
        """Messages that could not be read, the latest first, with their first 64 KiB and the reason."""
        return (yield from ask(relays.unread(relay, limit=limit)))

    aunread = averb(unread)

    @verb
    def discard(self, relay: str, ids: Sequence[int] | None = None) -> Procedure[int]:
        """Forget messages that could not be read: these, or all of a relay; returns how many."""
        return (yield from ask(relays.discard(relay, ids)))

    adiscard = averb(discard)

    @verb
    def remove(self, relay: str) -> Procedure[None]:
        """Forget a relay with its positions. The group of one that sends is removed by `EventBus.remove`.

        Raises:
            UnknownRelay: there is none of that name.
        """
        yield from ask(relays.remove(relay))

    aremove = averb(remove)


def _with_lag(relay: Relay, behind: object) -> Relay:
    events = getattr(behind, "events", None)
    return relay if relay.direction == "in" or events is None else replace(relay, lag=events)


def _position(relay: Relay | None, name: str, text: str) -> str:
    if relay is None or relay.direction != "in":
        raise UnknownRelay(
            f"no relay that takes is named {shown(name)}",
            "one that sends has its place in the log of events",
            f"`fencerow events replay {GROUP}NAME` moves that; `fencerow relay list` has the names",
        )
    if text in ENDS:
        return ENDS[text]
    is_redis = relay.place.startswith("redis")
    such = "the id of an entry, such as 1526919030474-0," if is_redis else "an offset"
    if not (REDIS if is_redis else KAFKA).fullmatch(text):
        raise InvalidInput(
            f"{shown(text)} is no position of {relay.place}",
            f"beginning, end or {such} is expected",
            f"`fencerow relay parts {name}` shows where it stands",
        )
    return text
