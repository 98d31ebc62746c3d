"""The relays that an app declares, and the rules for their names."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from fencerow.core.config import CoreConfig
from fencerow.core.errors import DeclarationError
from fencerow.core.telemetry import Telemetry
from fencerow.db.engine import Engine
from fencerow.db.text import shown
from fencerow.relay.broker import Place
from fencerow.relay.making import Maker
from fencerow.relay.standing import Standing
from fencerow.relay.taker import Gone

if TYPE_CHECKING:
    from fencerow.relay.sending import Outward

NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")


@dataclass(frozen=True, slots=True)
class RelayOut:
    """A relay that sends. What it sends comes by a group of the bus, which is another chore's."""

    name: str
    place: Place
    standing: Standing
    outward: Outward


@dataclass(frozen=True, slots=True)
class RelayIn:
    """A relay that takes."""

    name: str
    place: Place
    maker: Maker
    at_end: bool
    when_gone: Gone


@dataclass
class Declared:
    """All relays of an app, with what they need of it, asked for when a worker begins."""

    engine: Callable[[], Engine]
    config: CoreConfig
    telemetry: Telemetry
    out: list[RelayOut] = field(default_factory=list)
    inward: list[RelayIn] = field(default_factory=list)

    @property
    def names(self) -> list[str]:
        return [*(each.name for each in self.out), *(each.name for each in self.inward)]


def check_name(name: object, known: Declared) -> str:
    """Accept the name of a relay.

    Raises:
        DeclarationError: it is no name, or another relay of this app has it.
    """
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise DeclarationError(
            f"a relay is named {shown(name)}", "1 to 64 letters, digits and _ . - are expected", "rename it"
        )
    if name in known.names:
        raise DeclarationError(
            f"the relay {name!r} is declared twice", "a name is one relay's", "choose another name"
        )
    return name
