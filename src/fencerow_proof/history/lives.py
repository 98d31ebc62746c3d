"""One job's life as the history tells it: its attempts, what ended them, and what may have happened unseen."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from fencerow.turns.gates import KEY, LIMIT
from fencerow_proof.history.acts import NEVER, Act, History

CLAIMS = frozenset({"claim"})
FINISHES = frozenset(
    {"succeed", "fail", "stop", "requeue", "suspend", "crash"}
)  # by the holder, under its fence
TAKINGS = frozenset({"reclaim", "time_out"})  # by others
ENDINGS = FINISHES | TAKINGS
NOTES = frozenset({"progress", "log", "note_alone"})
FENCED = ENDINGS | NOTES
REMOVALS = frozenset({"delete", "purge_by_age", "purge_by_own_age", "purge_by_count", "purge_spent"})
PERIODS = frozenset({"detach_period", "finalize_period", "drop_period"})  # whose jobs go without being named
ENDED_BY_AGE = frozenset({"expire", "disown"})


@dataclass(slots=True)
class Attempt:
    """One number of a job's fence, and all that was written under it for certain."""

    number: int
    claims: list[Act] = field(default_factory=list[Act])
    endings: list[Act] = field(default_factory=list[Act])
    notes: list[Act] = field(default_factory=list[Act])
    maybe_ended: list[Act] = field(default_factory=list[Act])  # by its own holder

    @property
    def holder(self) -> str | None:
        """Who held it, if anything tells."""
        acts = (*self.claims, *self.endings, *self.notes, *self.maybe_ended)
        return next((act.holder for act in acts if act.holder), None)

    @property
    def writes(self) -> Iterator[Act]:
        yield from self.notes
        yield from self.endings


@dataclass(slots=True)
class Life:
    """The acts of one job, sorted by their start."""

    job: str
    acts: list[Act]
    attempts: dict[int, Attempt]

    def all(self, *verbs: str) -> list[Act]:
        """The acts of these verbs that happened for certain."""
        return [act for act in self.acts if act.verb in verbs and act.happened]

    def maybe(self, *verbs: str) -> list[Act]:
        """Those of these verbs that happened or not."""
        return [act for act in self.acts if act.verb in verbs and act.maybe]

    def possible(self, *verbs: str) -> list[Act]:
        return [act for act in self.acts if act.verb in verbs and act.possible]

    @property
    def numbers(self) -> list[int]:
        return sorted(self.attempts)

    @property
    def highest(self) -> int:
        return max(self.attempts, default=0)


@dataclass(slots=True)
class Unseen:
    """What undecided acts without a job may have done to any of them: of each kind and holder the earliest.

    An undecided act has no end, so whatever a later one of its kind may explain the earliest may explain as well.
    """

    claims: dict[str | None, Act] = field(default_factory=dict[str | None, Act])  # by holder
    reclaims: dict[str | None, Act] = field(default_factory=dict[str | None, Act])  # by the lost holder
    time_out: Act | None = None
    removal: Act | None = None
    expiry: Act | None = None
    fall_back: Act | None = None
    # By the gate at which it may have given a turn; None: at that of some key.
    hand_overs: dict[str | None, Act] = field(default_factory=dict[str | None, Act])

    def claim_of(self, holder: str | None, until_us: int) -> Act | None:
        """An undecided claim, of this holder if one is known, that began early enough."""
        found = self.claims.values() if holder is None else (self.claims.get(holder),)
        return next((act for act in found if act is not None and act.start_us <= until_us), None)

    def taking_of(self, holder: str | None, until_us: int) -> Act | None:
        """An undecided reclaim from this holder, or an undecided sweep of the late, that began early enough."""
        return next((act for act in self.takings({holder}) if act.start_us <= until_us), None)

    def hand_overs_at(self, gates: Collection[str] | None) -> list[Act]:
        """Undecided acts that may have queued a job which waited at one of these gates (None: nobody knows where)."""
        of_keys = () if gates is None or not any(gate.startswith(KEY) for gate in gates) else (None,)
        names = self.hand_overs if gates is None else (*gates, *of_keys)
        return [act for name in names if (act := self.hand_overs.get(name)) is not None]

    def takings(self, holders: set[str | None]) -> list[Act]:
        """Undecided acts that may have taken a job from one of these; None is a holder that nobody knows."""
        if None in holders:
            found = list(self.reclaims.values())
        else:
            found = [act for each in (*holders, None) if (act := self.reclaims.get(each)) is not None]
        return found if self.time_out is None else [*found, self.time_out]


def unseen(history: History) -> Unseen:
    """Collect what is undecided and names no job; the acts are sorted by their start."""
    found, ended = Unseen(), _ended_unseen(history)
    for act in history.others:
        if act.verb in PERIODS and act.possible:
            found.removal = found.removal or act
        if not act.maybe:
            continue
        if act.verb in CLAIMS:
            found.claims.setdefault(act.holder, act)
        elif act.verb == "reclaim":
            found.reclaims.setdefault(act.holder, act)
        elif act.verb == "time_out":
            found.time_out = found.time_out or act
        elif act.verb in REMOVALS:
            found.removal = found.removal or act
        elif act.verb in ENDED_BY_AGE:
            found.expiry = found.expiry or act
        elif act.verb == "fall_back":
            found.fall_back = found.fall_back or act
        elif act.verb == "hand_over":
            for gate in _looked_at(act, ended.get(act.op, [])):
                found.hand_overs.setdefault(gate, act)
    return found


def gates_of(acts: Sequence[Act]) -> list[str] | None:
    """Where a job of these acts can wait: under the limits that it names, else for its key; None if nobody knows."""
    told = _told(acts)
    if told is None:
        return None
    if told.limits:
        return [f"{LIMIT}{limit}" for limit in told.limits]
    return [] if told.exclusive is None else [f"{KEY}{told.exclusive}"]


def _looked_at(hand_over: Act, ended: Sequence[Sequence[Act]]) -> list[str | None]:
    """At which gates: those of a look are told, and an end passes on the turns of the keys that its jobs had."""
    if hand_over.limits is not None:
        return [f"{LIMIT}{limit}" for limit in hand_over.limits]
    told = [_told(acts) for acts in ended] or [None]
    keys = [None if each is None else each.exclusive for each in told if each is None or each.exclusive]
    return [None if key is None else f"{KEY}{key}" for key in keys]


def _ended_unseen(history: History) -> dict[tuple[int, int], list[Sequence[Act]]]:
    """The acts of the jobs that an undecided success may have ended, by its operation."""
    found: dict[tuple[int, int], list[Sequence[Act]]] = {}
    for acts in history.by_job.values():
        for act in acts:
            if act.verb == "succeed" and act.maybe:
                found.setdefault(act.op, []).append(acts)
    return found


def _told(acts: Sequence[Act]) -> Act | None:
    """The submit, which tells what its job needs; None without one, or where that may have been changed since."""
    submits = [act for act in acts if act.verb == "submit" and act.possible]
    changed = any(act.verb == "change" and act.possible for act in acts)
    return None if changed or not submits else submits[0]


def lives(history: History) -> Iterator[Life]:
    """Every job's life. A job that was removed and submitted anew under its id has as many lives."""
    for job, acts in history.by_job.items():
        for part in _parted(history, without_withdrawn(acts)):
            yield Life(job, part, _attempts(part))


def without_withdrawn(acts: Sequence[Act]) -> list[Act]:
    """Leave out inserts that the same transaction took back."""
    withdrawn = {act.op for act in acts if act.verb == "withdraw" and act.happened}
    return [
        act for act in acts if act.verb != "withdraw" and not (act.verb == "submit" and act.op in withdrawn)
    ]


def _parted(history: History, acts: list[Act]) -> Iterator[list[Act]]:
    removed = [act for act in acts if act.verb in REMOVALS and act.happened]
    for removal in removed:
        again = [act for act in acts if act.verb == "submit" and act.new and history.before(removal, act)]
        if again:
            border = again[0].start_us
            yield [act for act in acts if act.start_us < border]
            acts = [act for act in acts if act.start_us >= border]
    yield acts


def _attempts(acts: Iterable[Act]) -> dict[int, Attempt]:
    found: dict[int, Attempt] = {}
    for act in acts:
        if act.attempt is None or not act.possible:
            continue
        attempt = found.get(act.attempt)
        if attempt is None:
            attempt = found[act.attempt] = Attempt(act.attempt)
        if act.maybe:
            if act.verb in FINISHES:
                attempt.maybe_ended.append(act)
        elif act.verb in CLAIMS:
            attempt.claims.append(act)
        elif act.verb in ENDINGS:
            attempt.endings.append(act)
        elif act.verb in NOTES:
            attempt.notes.append(act)
    return found


def first_end(acts: Iterable[Act]) -> int:
    """When the first of these was over."""
    return min((act.end_us for act in acts), default=NEVER)
