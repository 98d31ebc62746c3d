"""I14 limits are kept: no claim takes more than it asked for, no worker runs more suspects or jobs than it said.

`exceeded` is for any limit: it takes spans in which something was held for certain, and the most there may be at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fencerow_proof.history.acts import NEVER, Act, History
from fencerow_proof.history.checks.leases import Workers
from fencerow_proof.history.lives import CLAIMS, Life, Unseen
from fencerow_proof.history.report import Report


@dataclass(frozen=True, slots=True)
class Held:
    """Something was held at least from `from_us` to `until_us`; `act` began it."""

    from_us: int
    until_us: int
    act: Act
    beside: int = NEVER  # how many there may be at most, itself among them, as it says itself


def exceeded(spans: Sequence[Held], limit: int) -> list[Act]:
    """The acts whose holdings overlap for certain beyond the limit, or beyond what one of them allows; or nothing."""
    edges = sorted(
        [(span.from_us, 1, index) for index, span in enumerate(spans) if span.until_us > span.from_us]
        + [(span.until_us, 0, index) for index, span in enumerate(spans) if span.until_us > span.from_us]
    )
    held: set[int] = set()
    for _, begins, index in edges:
        if begins:
            held.add(index)
            if len(held) > min(limit, *(spans[each].beside for each in held)):
                return [spans[each].act for each in sorted(held)]
        else:
            held.discard(index)
    return []


def check_claims(report: Report, history: History) -> None:
    """A claim takes at most as many jobs as it asked for."""
    taken: dict[tuple[int, int], list[Act]] = {}
    for acts in history.by_job.values():
        for act in acts:
            if act.verb in CLAIMS and act.happened:
                taken.setdefault(act.op, []).append(act)
    for acts in taken.values():
        report.looked["I14"] += 1
        limit = acts[0].limit
        if limit is not None and len(acts) > limit:
            report.add("I14", f"a claim for {limit} jobs took {len(acts)}", acts[0].job, acts)


class Suspects:
    """Collects the leases of suspects by their holder; a worker names with each claim how many it may hold."""

    def __init__(self) -> None:
        self._by_holder: dict[str, list[Held]] = {}

    def take(self, life: Life, hidden: Unseen) -> None:
        for attempt in life.attempts.values():
            for claim in attempt.claims:
                if claim.suspect and claim.holder is not None:
                    span = Held(claim.end_us, self._certain_end(attempt.endings, attempt.maybe_ended), claim)
                    if hidden.taking_of(claim.holder, NEVER) is None:
                        self._by_holder.setdefault(claim.holder, []).append(span)

    def check(self, report: Report) -> None:
        for holder, spans in self._by_holder.items():
            report.looked["I14"] += len(spans)
            acts = exceeded(spans, max(span.act.limit or 1 for span in spans))
            if acts:
                report.add("I14", f"{holder} held {len(acts)} suspects at once", acts[0].job, acts)

    def _certain_end(self, endings: Sequence[Act], maybe: Sequence[Act]) -> int:
        """It was held at least until the first act began that can have ended it."""
        return min((act.start_us for act in (*endings, *maybe)), default=NEVER)


def check_slots(report: Report, history: History, workers: Workers) -> None:
    """No worker runs more handlers at once than it registered slots for, as far as their runs were recorded."""
    runs: dict[str, list[Held]] = {}
    for acts in history.by_job.values():
        for act in acts:
            if act.verb == "run" and act.holder is not None:
                runs.setdefault(act.holder, []).append(Held(act.start_us, act.end_us, act))
    for holder, spans in runs.items():
        found = workers.by_holder.get(holder)
        if found is None or found.slots is None or found.ordered:
            continue
        report.looked["I14"] += len(spans)
        acts = exceeded([span for span in spans if span.until_us < NEVER], found.slots)
        if acts:
            report.add("I14", f"{holder} ran {len(acts)} jobs in {found.slots} slots", acts[0].job, acts)
