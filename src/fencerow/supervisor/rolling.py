"""A rolling restart: one process after the other is replaced by a new one, and the old one leaves only then."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from fencerow.db.text import amount
from fencerow.supervisor.member import MemberPlace, MemberProcess

log = logging.getLogger("fencerow.supervisor")


class Rolling:
    """New code must show that it starts before old code leaves. So there is one process more meanwhile.

    `start` starts a process for a place, `bury` forgets one that has ended.
    """

    def __init__(self, start: Callable[[int], MemberProcess], bury: Callable[[MemberProcess], None]) -> None:
        self._start = start
        self._bury = bury
        self._waiting: list[MemberPlace] = []
        self._place: MemberPlace | None = None  # whose process is being replaced
        self._new: MemberProcess | None = None
        self._old: MemberProcess | None = None
        self._dropped: list[MemberProcess] = []  # new ones that a newer restart has replaced

    def begin(self, places: Sequence[MemberPlace]) -> None:
        """Replace the processes of these places, one after the other; those that were waiting too, but once.

        One that is being started is replaced as well: it may hang, or have code that is old by now.
        """
        if self._new is not None:
            self._drop(self._new)
            self._new = None
        replaced = amount(len(places), "process is replaced", "processes are replaced")
        log.info("rolling restart: %s, one after the other", replaced)
        self._waiting = list(places)

    def members(self) -> list[MemberProcess]:
        """The new one that is not ready yet, the old one that has not ended yet, and those that were replaced."""
        return [*(each for each in (self._new, self._old) if each is not None), *self._dropped]

    def is_filling(self, place: MemberPlace) -> bool:
        """Whether the process that is being started is for this place."""
        return self._new is not None and self._place is place

    def step(self, *, leaving: bool) -> None:
        """Go on as far as is possible now."""
        if leaving:
            self._waiting.clear()
        self._look_at_dropped()
        self._look_at_old()
        self._look_at_new(leaving=leaving)
        if self._new is None and self._old is None and self._waiting:
            self._next()

    def _drop(self, member: MemberProcess) -> None:
        log.info("rolling restart: process %d, which was not ready yet, is replaced", member.number)
        member.order(hurry=True)
        if member.vitals is None:
            member.end_start()  # it does not listen yet
        self._dropped.append(member)

    def _look_at_dropped(self) -> None:
        for member in [each for each in self._dropped if each.ended() is not None]:
            self._bury(member)
            self._dropped.remove(member)

    def _look_at_old(self) -> None:
        if self._old is None or self._old.ended() is None:
            return
        log.info("process %d, the old one, %s", self._old.number, self._old.last_words())
        self._bury(self._old)
        self._old = None
        if not self._waiting:
            log.info("rolling restart: done")

    def _look_at_new(self, *, leaving: bool) -> None:
        new, place = self._new, self._place
        if new is None or place is None:
            return
        if new.ended() is not None:
            self._bury(new)
            self._new = None
            if not leaving:
                self._give_up(f"process {new.number}, the new one, {new.last_words()} before it was ready")
        elif new.is_ready and self._old is None:
            self._old, place.member, self._new = place.member, new, None
            if self._old is not None:
                self._old.order(hurry=False)

    def _next(self) -> None:
        self._place = self._waiting.pop(0)
        try:
            self._new = self._start(self._place.number)
        except OSError as error:
            self._give_up(f"process {self._place.number} cannot be started: {error}")

    def _give_up(self, why: str) -> None:
        self._waiting.clear()
        log.error("rolling restart: given up, the old processes go on: %s", why)
