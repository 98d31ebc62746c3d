"""Trouble that several loops of a worker meet at once, such as a server that is down: one of them tells of it."""

from __future__ import annotations


class Outage:
    """Who meets which trouble now. Used on the event loop only."""

    def __init__(self) -> None:
        self._met: dict[
            object, str
        ] = {}  # the kind of trouble that each meets, who met it first before the others

    def met(self, who: object, kind: str) -> bool:
        """Note that this one meets trouble; returns whether it is the one to tell of it: the first that still does."""
        self._met[who] = kind
        return next(each for each, other in self._met.items() if other == kind) is who

    def over(self, who: object) -> None:
        """It meets none any more."""
        self._met.pop(who, None)
