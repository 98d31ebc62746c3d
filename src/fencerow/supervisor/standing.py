"""How a service stands: the one answer for a service manager and for probes, of one worker or of several."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fencerow.core.worker.vitals import Phase, Vitals
from fencerow.db.text import amount


@dataclass(frozen=True, slots=True)
class Standing:
    """`faults` says why this process should be ended and started anew; it is alive while there are none."""

    is_ready: bool
    is_leaving: bool
    status: str
    faults: tuple[str, ...] = ()

    @property
    def is_alive(self) -> bool:
        return not self.faults


WAITING = Standing(is_ready=False, is_leaving=False, status="waits for the database")


def of_worker(vitals: Vitals) -> Standing:
    """Of a process that is one worker."""
    doing = f"{vitals.phase}, {_jobs(vitals.running)}"
    if vitals.phase is Phase.RUNNING and not vitals.holds_lease:
        doing = f"waits for the database, {_jobs(vitals.running)}"
    return Standing(vitals.is_ready, _is_leaving(vitals), doing, vitals.faults)


def of_several(
    processes: Sequence[Vitals | None], wanted: int, *, leaving: bool, faults: tuple[str, ...] = ()
) -> Standing:
    """Of a supervisor that wants so many processes. None: one that has said nothing yet."""
    known = [each for each in processes if each is not None]
    ready = sum(each.is_ready for each in known)
    running = sum(each.running for each in known)
    if leaving:
        status = f"leaving, {amount(len(processes), 'process', 'processes')} left, {_jobs(running)}"
    else:
        status = f"{ready} of {wanted} processes ready, {_jobs(running)}"
    return Standing(not leaving and ready >= wanted, leaving, status, faults)


def _is_leaving(vitals: Vitals) -> bool:
    return vitals.phase in (Phase.LEAVING, Phase.ENDED)


def _jobs(count: int) -> str:
    return f"{amount(count, 'job')} held"
