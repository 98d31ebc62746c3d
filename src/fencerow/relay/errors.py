"""Errors of relays (945 to 949)."""

from __future__ import annotations

from typing import ClassVar

from fencerow.db.errors import exits
from fencerow.db.errors.base import FencerowError


class UnknownRelay(FencerowError):
    """No relay of that name, or no part of that number, is known in this database. Nothing was changed."""

    code = "FR-945"
    exit_code = exits.REFUSED
    status: ClassVar[int] = 404


class RelayPartLost(FencerowError):
    """This process no longer reads the part: another one took it over, or somebody moved its position. Nothing of the
    transaction was stored; who reads it now begins where it really stands."""

    code = "FR-946"


class BrokerAway(FencerowError):
    """The broker does not answer, refuses the login, or takes nothing at all just now. The relay waits and tries again;
    nothing is lost."""

    code = "FR-947"


class BrokerRefused(FencerowError):
    """The broker will never take this message, such as one that is too large. Its event is parked, and the rest goes
    on."""

    code = "FR-948"


class PositionGone(FencerowError):
    """The broker no longer has what comes after the position of a relay: its topic was trimmed, or made anew.

    `gone`: how many messages were removed unread, None where the broker does not say. `earliest`, `latest`: where one
    could go on. `anew`: its positions begin again, so that old ones say nothing.
    """

    code = "FR-949"

    def __init__(
        self,
        what: str,
        why: str = "",
        fix: str = "",
        *,
        gone: int | None = None,
        earliest: str = "",
        latest: str = "",
        anew: bool = False,
    ) -> None:
        super().__init__(what, why, fix)
        self.gone = gone
        self.earliest = earliest
        self.latest = latest
        self.anew = anew
