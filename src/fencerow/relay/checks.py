"""Relays that do not go on, that lost something, or that nobody runs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from fencerow.command.times import span
from fencerow.core.config import CoreConfig
from fencerow.core.finding import Finding, fail, info, ok, warn
from fencerow.db.engine import Engine
from fencerow.db.text import amount
from fencerow.relay.relays import Relay, listed

RECENT_S: Final = 86_400.0
PATIENCE_S: Final = 60.0


def examine_relays(engine: Engine, _config: CoreConfig) -> Iterator[Finding]:
    """Each relay; nothing is said where there is none."""
    found = engine.run(listed())
    for each in found:
        yield from findings_of(each)
    if found:
        yield ok("relays", f"{amount(len(found), 'relay')} known")


def findings_of(found: Relay) -> Iterator[Finding]:
    """What is to be said of one relay."""
    if found.trouble is not None:
        say = fail if found.waits_s > PATIENCE_S else warn
        yield say(
            "relay whose broker is away",
            f"the relay {found.name} ({found.place}) has waited for {span(found.waits_s)}: {found.trouble}",
            "see to the broker; nothing is lost while it is away, as long as events and messages are kept",
        )
    if found.stopped is not None:
        yield fail(
            "relay that has stopped",
            f"the relay {found.name} has stopped: {found.stopped}",
            f"`fencerow relay parts {found.name}`, then `fencerow relay move {found.name} PART POSITION`",
        )
    if found.gone_at_us is not None and (found.now_us - found.gone_at_us) / 1e6 < RECENT_S:
        yield warn(
            "relay that lost messages",
            f"the broker of the relay {found.name} has lost what it had, or removed messages before they were read "
            f"({found.gone} are known of)",
            "let the broker keep more, and ask who sent them to send them again",
        )
    if found.unread:
        yield warn(
            "messages that could not be read",
            f"{amount(found.unread, 'message')} of the relay {found.name} could not be read so far",
            f"`fencerow relay unread {found.name}` shows them",
        )
    if found.paused_at_us is not None:
        yield info(
            "relay that rests",
            f"the relay {found.name} has rested for {span((found.now_us - found.paused_at_us) / 1e6)}",
            f"`fencerow relay resume {found.name}`",
        )
    elif not found.readers:
        yield warn(
            "relay that nobody runs",
            f"no worker runs the relay {found.name}",
            f"run a worker of its application, or `fencerow relay remove {found.name}` if nobody needs it any more",
        )
