"""When a schedule fires: a pure value. It reads no clock, so every worker computes the same instants from it.

Instants are whole microseconds since 1970, as the database gives them. The seed is the schedule's name with its
entity: it moves entities apart (`spread`) and fixes the jitter, always in the same way.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import fencerow.schedules.spec_text as spec_text
from fencerow.schedules.cron import Cron
from fencerow.schedules.evenly import Evenly
from fencerow.schedules.seeds import below
from fencerow.schedules.spec_text import RESOLUTION_US
from fencerow.schedules.words import in_words


@dataclass(frozen=True, slots=True)
class Spec:
    """A cron expression in a time zone, or evenly spaced fires; both with a jitter, if wanted.

    A jitter delays each fire by 0 to `jitter_us`. It never reaches the next fire: at least a second lies between two.
    """

    times: Cron | Evenly
    jitter_us: int
    _document: tuple[tuple[str, object], ...]

    @classmethod
    def parse(cls, document: Mapping[str, object]) -> Spec:
        """From what was declared or stored: one of `cron` (with `tz`), `rate` (with `per`) or `interval_s`.

        Raises InvalidSchedule for what cannot work, UnknownZone for a zone that this machine does not know.
        """
        times, jitter_us, said = spec_text.read(document)
        return cls(times, jitter_us, tuple(said.items()))

    def document(self) -> dict[str, object]:
        """The same as JSON can carry it, in one spelling: equal documents mean equal fires."""
        return dict(self._document)

    def next_after(self, instant_us: int, seed: str) -> int:
        """The first fire that is strictly later."""
        if self.jitter_us:
            before = self._moved(self.times.last_until(instant_us, seed), seed)
            if before > instant_us:
                return before
        return self._moved(self.times.next_after(instant_us, seed), seed)

    def last_until(self, instant_us: int, seed: str) -> int:
        """The last fire that is not later."""
        found = self.times.last_until(instant_us, seed)
        if self._moved(found, seed) > instant_us:
            found = self.times.last_until(found - 1, seed)
        return self._moved(found, seed)

    def fires(self, after_us: int, until_us: int, seed: str, at_most: int) -> list[int]:
        """The fires in (after, until], the earliest first, and no more than `at_most` of them."""
        found: list[int] = []
        for fire in self._from(after_us, seed):
            if fire > until_us or len(found) >= at_most:
                break
            found.append(fire)
        return found

    def in_words(self) -> str:
        """For people: `At 09:00 on Monday through Friday, in Europe/Berlin`, `4 times an hour`."""
        return in_words(self.times, self.jitter_us, self.document())

    def _from(self, after_us: int, seed: str) -> Iterator[int]:
        fire = after_us
        while True:
            fire = self.next_after(fire, seed)
            yield fire

    def _moved(self, fire_us: int, seed: str) -> int:
        """A fire with its delay, which ends a second before the next fire."""
        if not self.jitter_us:
            return fire_us
        room_us = self.times.next_after(fire_us, seed) - fire_us - RESOLUTION_US
        return fire_us + below(min(self.jitter_us, room_us) + 1, "jitter", seed, fire_us)
