"""I3 no overlapping leases: an attempt follows another only after that one's end, and only the dead are robbed."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise

from fencerow_proof.history.acts import Act, History
from fencerow_proof.history.final import Final
from fencerow_proof.history.lives import CLAIMS, Attempt, Life, Unseen
from fencerow_proof.history.report import Report

CLOCKS_AGREE_S = 0.01  # what the database's clock and the machine's steady one may differ over one lease


@dataclass(slots=True)
class Registration:
    """One holder: its lease, and when it was renewed, left, or was declared dead."""

    holder: str
    lease_s: float | None = None
    slots: int | None = None  # the most it ever said it had
    ordered: bool = False  # whether somebody may have changed them while it ran
    renewals: list[Act] = field(default_factory=list[Act])  # the registration itself is the first
    ends: list[Act] = field(default_factory=list[Act])  # deaths and retirements, undecided ones too


@dataclass(slots=True)
class Workers:
    """All holders of a run. `maybe_dead` are undecided acts that may have declared anybody dead."""

    by_holder: dict[str, Registration] = field(default_factory=dict[str, Registration])
    maybe_dead: list[Act] = field(default_factory=list[Act])

    def end_of(self, holder: str) -> list[Act]:
        found = self.by_holder.get(holder)
        return [] if found is None else found.ends

    def may_be_gone(self, holder: str, until_us: int) -> bool:
        """Whether anything that began by then can have ended this registration."""
        return any(act.start_us <= until_us for act in (*self.end_of(holder), *self.maybe_dead))


def workers_of(history: History) -> Workers:
    """Read the lives of the workers."""
    workers = Workers()
    for act in history.others:
        if (
            act.verb in ("register", "renew", "retire", "die", "die_ahead", "adopt", "order_worker")
            and act.possible
        ):
            _take(workers, act)
    return workers


def _take(workers: Workers, act: Act) -> None:
    if act.holder is None:
        if act.maybe and act.verb in ("die", "die_ahead", "adopt"):
            workers.maybe_dead.append(act)
        return
    found = workers.by_holder.setdefault(act.holder, Registration(act.holder))
    found.lease_s = found.lease_s if act.lease_s is None else act.lease_s
    found.slots = max((each for each in (act.slots, found.slots) if each is not None), default=None)
    found.ordered = found.ordered or act.verb == "order_worker"
    if act.verb in ("register", "renew"):
        if act.happened:
            found.renewals.append(act)
    elif act.verb != "order_worker":
        found.ends.append(act)


def check_workers(report: Report, workers: Workers, *, clock_moved: bool) -> None:
    """The moves of workers themselves: who is dead stays dead, and nobody dies before the lease is over."""
    history = report.history
    for found in workers.by_holder.values():
        report.looked["I3"] += 1
        for end in (act for act in found.ends if act.happened):
            late = [act for act in found.renewals if history.before(end, act)]
            if late:
                report.add("I3", f"{found.holder} renewed after its {end.verb}", None, [end, *late[:1]])
            if end.verb in ("die", "die_ahead") and not clock_moved:
                _not_too_early(report, found, end)


def _not_too_early(report: Report, found: Registration, death: Act) -> None:
    sure = [act for act in found.renewals if report.history.before(act, death)]
    if not sure or found.lease_s is None:
        return
    last = max(sure, key=lambda act: act.start_us)
    lived_s = (death.end_us - last.start_us) / 1e6
    if lived_s + CLOCKS_AGREE_S < found.lease_s:
        what = f"{found.holder} was declared dead {lived_s:.3f} s after a renewal of {found.lease_s:g} s"
        report.add("I3", what, None, [last, death])


def check_leases(
    report: Report, life: Life, hidden: Unseen, workers: Workers, final: Final | None, *, clock_moved: bool
) -> None:
    """One job's leases, by the order of acts, and by the database's own instants if it is there."""
    numbers = life.numbers
    for number, following in pairwise(numbers):
        report.looked["I3"] += 1
        _ended_before(report, life, life.attempts[number], life.attempts[following], hidden)
    for act in life.all("reclaim"):
        _from_the_dead(report, life, act, workers)
    for act in life.all(*CLAIMS):
        _by_the_living(report, life, act, workers)
    if final is not None and not clock_moved:
        _disjoint(report, life, final)


def _ended_before(report: Report, life: Life, one: Attempt, other: Attempt, hidden: Unseen) -> None:
    """An attempt was claimed although the one before it was not over."""
    claims = other.claims
    if not claims or other.number != one.number + 1:
        return
    (claim, *_) = claims
    if any(not report.history.before(claim, ending) for ending in (*one.endings, *one.maybe_ended)):
        return
    if not one.endings and hidden.taking_of(one.holder, claim.end_us) is not None:
        return
    what = f"attempt {other.number} was claimed while attempt {one.number} was running"
    report.add("I3", what, life.job, [*one.claims, *one.endings, claim])


def _from_the_dead(report: Report, life: Life, act: Act, workers: Workers) -> None:
    report.looked["I3"] += 1
    if act.holder is not None and not workers.may_be_gone(act.holder, act.end_us):
        found = workers.by_holder.get(act.holder)
        known = found.renewals[-1:] if found is not None else []
        report.add("I3", f"it was taken from {act.holder}, which was alive", life.job, [*known, act])


def _by_the_living(report: Report, life: Life, act: Act, workers: Workers) -> None:
    report.looked["I3"] += 1
    ends = [
        end for end in workers.end_of(act.holder or "") if end.happened and report.history.before(end, act)
    ]
    if ends:
        what = f"{act.holder} claimed attempt {act.attempt} after its {ends[0].verb}"
        report.add("I3", what, life.job, [*ends[:1], act])


def _disjoint(report: Report, life: Life, final: Final) -> None:
    """In the database's time the leases follow each other."""
    spans = [
        (each.attempt, each.claimed_us, each.at_us)
        for each in final.noted.get(life.job, [])
        if each.claimed_us is not None
    ]
    for row in final.rows.get(life.job, []):
        if (
            row.claimed_us is not None
            and row.ended_us is not None
            and row.attempt not in {s[0] for s in spans}
        ):
            spans.append((row.attempt, row.claimed_us, row.ended_us))
    spans.sort()
    for one, other in pairwise(spans):
        report.looked["I3"] += 1
        if other[1] < one[2]:
            what = (
                f"by the database attempt {other[0]} began {(one[2] - other[1]) / 1e6:.6f} s "
                f"before the end of attempt {one[0]}"
            )
            acts = [act for n in (one[0], other[0]) if n in life.attempts for act in life.attempts[n].claims]
            report.add("I3", what, life.job, acts)
