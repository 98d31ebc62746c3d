"""How much time has passed for the worker that nothing strikes, counted in its own deeds instead of seconds.

On a machine that is kept busy seconds say how busy it is. A sweep says more: what is owed is due at the first one after
the lease has run out, however long that sweep waits for a core, or for its turn at the write lock of a file.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path

from fencerow_proof.history.acts import Act
from fencerow_proof.history.reading import read_history
from tests.proof.storm.plan import RENEW_S, SWEEP_S

# A worker that has all but ceased to sweep is not excused by its few sweeps: it renews as ever, from another thread.
RENEWALS_COUNT = 1 / 3


@dataclass(frozen=True)
class Pace:
    """When it renewed its lease and when it looked for the dead, by the clock of the host, which no fault moves."""

    renewals: Collection[float]
    sweeps: Collection[float]

    def passed_s(self, since: float, until: float) -> float:
        """The seconds that these deeds take on a machine that is not busy."""
        renewed = sum(since < at < until for at in self.renewals)
        swept = sum(since < at < until for at in self.sweeps)
        return max(swept * SWEEP_S, renewed * RENEW_S * RENEWALS_COUNT)


def pace_of(histories: Path, pids: Collection[int]) -> Pace:
    """The pace of these processes, one after the other, as they wrote it down."""
    renewals: list[float] = []
    sweeps: list[float] = []
    for path in histories.iterdir():
        # A history is called by the process that wrote it.
        if int(path.name.partition("-")[0]) in pids:
            history = read_history([path])
            (source,) = history.sources
            renewals += _ends_s(history.of("renew"), source.wall_minus_mono_us)
            sweeps += _ends_s(history.of("die"), source.wall_minus_mono_us)
    return Pace(renewals, sweeps)


def _ends_s(acts: Iterable[Act], shift_us: int) -> list[float]:
    """One time for each statement that came to its end, however many rows it found."""
    ends_us = {act.op: act.end_us for act in acts if act.happened}
    return [(end_us + shift_us) / 1_000_000 for end_us in ends_us.values()]
