"""What the claimer remembers of one queue: its lanes, their low-water marks, and when something is due.

A mark spares the claim the dead entries at the head of its lane. It is only a hint: what commits late
behind it is found by the sweep, which starts from the beginning every max(1 s, 50 times its cost); what
we put behind it ourselves lowers it through a wake-up.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import replace

from fencerow.core.model.job import Claimed, QueueLane
from fencerow.core.model.lane import ANYBODYS, SHARE, STRICT, SUSPECT, Ageing, family_of, label_of
from fencerow.core.model.turns import LaneTurns, Ring
from fencerow.core.store.claims import NIL, Mark
from fencerow.core.worker.database_time import STORED_US_MAX, DatabaseTime
from fencerow.core.worker.heads import Heads, Key, by_turn, earlier, key_of, reached
from fencerow.core.worker.queue_limit import QueueLimit
from fencerow.core.worker.suspect_lanes import SuspectLanes
from fencerow.core.worker.told import Told
from fencerow.db.beat import by_beat
from fencerow.db.imprint import LastImprint

SWEEP_S_MIN = 1.0
SWEEP_SHARE = 50.0
SWEEP_S_MAX = 5.0  # whatever it costs: without wake-ups this is how late work may be found
# When to look again after a hint whose claim came back short: the row may have been locked for an instant, by
# somebody who marked it as awaited or by a cancel, and a claim skips what is locked.
LOOKS_AFTER_HINT_S = (0.008, 0.06)
# Each such look walks over all jobs that nobody knows here: beyond what is cheap it comes so many times its cost later.
LOOK_SHARE, CHEAP_S = 5.0, 0.01
LOCKED_AGAIN_S = 0.5  # after a claim that waited for a locked row in vain


class QueueView:
    """One queue as this worker sees it. All times are this host's monotonic seconds."""

    def __init__(self, queue: str, poll_max_s: float, ageing: Ageing = STRICT) -> None:
        self.queue = queue
        self._poll_max_s = poll_max_s
        self._ageing = ageing
        self.suspects = SuspectLanes()
        self._marks: dict[Key, Mark] = {}
        # Where marks stood that were given up since the last look, and when that was, by the database's clock.
        self._left_us: dict[Key, int] = {}
        self._dry = True
        self._due_at: float | None = None
        self._looked_us, self._sweep_at, self._hinted_at = 0, 0.0, 0.0
        self._looks_left: tuple[float, ...] = ()
        self._costs_s = (0.0, 0.0)  # of the last two looks
        self._time = DatabaseTime()
        self._told = Told()
        self._hinted_due: tuple[float, float] | None = None
        self.limit = QueueLimit(poll_max_s)
        self._turns: dict[int, LaneTurns] = {}  # of priorities in which shares have, or had, jobs
        self._in_turn: int | None = None  # the priority whose turns the lanes of the last claim were
        self._looks_at: int | None = None  # the priority at whose shares a look is under way
        self.heads = Heads()
        self.seen = LastImprint()  # of the database, by the last look from the beginning

    def wants_sweep(self, now: float) -> bool:
        """Whether the lanes should be looked at from the beginning."""
        return now >= self._sweep_at or (self._due_at is not None and now >= self._due_at)

    def is_untold(self, now: float) -> bool:
        """Whether nothing but its interval asks for a look from the beginning now: no hint has come, nothing was known
        to become due, and it is neither the first look nor one after hints may have been lost."""
        return self._dry and self._sweep_at > 0 and (self._due_at is None or now < self._due_at)

    def rest(self, now: float) -> None:
        """A look from the beginning would find nothing new."""
        self._sweep_at = by_beat(now, self._poll_max_s)

    def swept(self, lanes: Iterable[QueueLane], now_us: int, began: float, due_us: int = 0) -> None:
        """Start every lane from its first queued job, and note what is due later; `due_us` may lie beyond now."""
        now = time.monotonic()
        if now_us:
            self._time.read(now_us, began, now)
        now_us = max(now_us, due_us)
        marks: dict[Key, Mark] = {}
        self.heads = Heads()
        later: list[float] = []
        self.suspects = SuspectLanes()
        self.limit.is_there = False
        self._looks_at = None
        for turns in self._turns.values():
            turns.restart(0)
        for lane in lanes:
            self.limit.is_there |= lane.limited
            key = lane.priority, lane.name
            # Not from the lane's beginning: the look has just walked over the dead entries before this job.
            mark = Mark(lane.priority, lane.first_us - 1, NIL, lane.name)
            due_at = now + (lane.first_us - now_us) / 1e6
            if lane.name.startswith(SUSPECT):
                self.suspects.seen(mark, due_at)
            elif lane.first_us <= now_us:
                marks[key] = mark
                if lane.name != SHARE:
                    self.heads.seen(key, lane.first_us)
            if due_at > now:
                later.append(due_at)
        if self._hinted_due is not None and self._hinted_due[1] >= began:
            later.append(self._hinted_due[0])
        self._hinted_due, self._marks, self._left_us = None, marks, {}
        self._looked_us = self._time.least_us(began)
        self._lower_to_hints(began)
        self._dry = not self._marks
        if self._dry and self._hinted_at < began:
            self._looks_left = ()  # it would have shown what is locked as well: what the hint told of is gone
        elif self._dry and self._looks_left:
            later.append(self._next_look())
        self._due_at = min(later, default=None)
        self._costs_s = (self._costs_s[1], now - began)
        self._sweep_at = by_beat(now, self._sweep_pause_s(self._poll_max_s if self._dry else SWEEP_S_MIN))

    def hint(self, priority: int, run_at_us: int | None, lane: str = ANYBODYS) -> None:
        """Somebody queued a job in this lane: lower its mark, or remember when it is due. None: just now, and due."""
        now = time.monotonic()
        if lane.startswith(SUSPECT):
            self._due_at, self._hinted_due = now, (now, now)  # a look tells of all suspects
            return
        key = priority, family_of(lane)
        if not self._time.is_known:
            # Without the database's clock a later start cannot be told from one that is due.
            self._sweep_at = 0.0
        elif run_at_us is not None:
            due_at = self._time.due_at(run_at_us)
            if due_at > now:
                self._hinted_due = self._look_by(due_at), now
                return
        self._looks_left = LOOKS_AFTER_HINT_S
        self._hinted_at = now
        from_us = self._stored_us(key, now) if run_at_us is None else run_at_us - 1
        lowered = Mark(priority, from_us, NIL, key[1])
        self._told.note(lowered, now)
        self._lower(lowered)
        self._dry = False

    def _stored_us(self, key: Key, now: float) -> int:
        """Before which instant no job of this lane lies that was stored just now; also where the lane has no mark, for
        one that began at this instant would lie behind the job."""
        empty_us = None if key in self._marks else self._left_us.get(key, self._looked_us)
        return self._time.stored_us(now, empty_us)

    def is_idle(self) -> bool:
        """Whether the last look from the beginning found nothing due, and no hint has come that it may have missed."""
        soon = time.monotonic() + self._look_pause_s(LOOKS_AFTER_HINT_S[-1])
        looks = bool(self._looks_left) or (self._due_at is not None and self._due_at <= soon)
        return self._dry and self._sweep_at > 0 and self.suspects.due_at is None and not looks

    def look_again(self) -> None:
        """Hints may have been lost: sweep at once."""
        self._sweep_at = 0.0

    def marks(self) -> list[Mark]:
        """Where the next claims start, the lane whose turn it is first; empty when nothing is thought to be due."""
        if self._dry or len(self._marks) == 1:  # nearly always
            return [] if self._dry else list(self._marks.values())
        return by_turn(self._marks.values(), self._ageing)

    def to_look_at(self, wanted: int) -> tuple[Mark, LaneTurns] | None:
        """The priority whose shares must be looked for before so many jobs are claimed, if it is its turn."""
        marks = self.marks()
        shared = next((mark for mark in marks if mark.lane == SHARE), None)
        if shared is None or marks[0].priority != shared.priority or label_of(marks[0].lane) is not None:
            return None
        turns = self._turns_of(shared.priority)
        return (shared, turns) if turns.wants_look(wanted) else None

    def look_begins(self, priority: int) -> float:
        """A look at the shares of this priority is sent; returns when. Until its answer no hint asks for another."""
        if self._looks_at is not None:
            self._turns_of(self._looks_at).restart(0)  # it had no answer, and hints may have come meanwhile
        self._looks_at = priority
        return time.monotonic()

    def looked(self, priority: int, ring: Ring, sent: float) -> None:
        """These lanes of shares were found by a look that was sent then."""
        turns = self._turns_of(priority)
        turns.looked(ring, anybodys=(priority, ANYBODYS) in self._marks)
        self._looks_at = None
        if turns.is_over:
            self._give_up((priority, SHARE))
            self._lower_to_hints(sent)
        else:
            # What was found is claimed first: where hints come all the time, looks alone would follow one another.
            self._told.keep(sent)
        self._dry = not self._marks
        self._note_dry((), time.monotonic() - sent)
        for member in ring.members:
            self.heads.seen((priority, member.lane), member.mark_us + 1)
        if ring.later_us is not None and self._time.is_known:
            self._look_by(self._time.due_at(ring.later_us))

    @property
    def has_more(self) -> bool:
        """Whether something is thought to be due."""
        return not self._dry

    def is_plain(self) -> bool:
        """Whether one claim may take all that is known to be due, and nothing is to be done before it: hints were heard
        all the time, there is no limit, no suspect, no lane that takes turns, and no job that claims passed over."""
        if self._sweep_at <= 0 or self.limit.is_there or self.suspects.due_at is not None:
            return False
        return SHARE not in {lane for _, lane in self._marks} and not self.heads.any_passed_over()

    def next(self, wanted: int) -> list[Mark]:
        """The lanes from which the next claim takes up to so many jobs, each with its mark and a number.

        One claim takes from many priorities. One in which shares take turns has claims of its own; what is there for
        labels of this worker is taken before.
        """
        self._in_turn = None
        lanes: list[Mark] = []
        marks = self.marks()
        shared = {mark.priority for mark in marks if mark.lane == SHARE}
        for mark in marks:
            if mark.priority not in shared or label_of(mark.lane) is not None:
                lanes.append(Mark(mark.priority, mark.run_at_us, mark.id, mark.lane, wanted))
            elif lanes:
                break  # behind labels come the shares of the same priority, and not what is less urgent
            else:
                self._in_turn = mark.priority
                return self._in_turns(mark.priority, wanted)
        return lanes

    def _in_turns(self, priority: int, wanted: int) -> list[Mark]:
        marks = []
        for member, count in self._turns_of(priority).plan(wanted):
            known = self._marks.get((priority, member.lane))
            start = Mark(priority, member.mark_us, member.mark_id, member.lane) if known is None else known
            marks.append(replace(start, count=count))
        return marks

    def _turns_of(self, priority: int) -> LaneTurns:
        return self._turns.setdefault(priority, LaneTurns())

    def line_us(self) -> int | None:
        """When the first job of all shares was due, of whose turns the last claim was: they are in line since then."""
        shared = None if self._in_turn is None else self._marks.get((self._in_turn, SHARE))
        return None if shared is None else shared.run_at_us

    def claimed(
        self, jobs: Sequence[Claimed], asked: int, sent: float | None = None, lanes: Sequence[Mark] = ()
    ) -> list[Claimed]:
        """Move the marks of these lanes past what was claimed from them; fewer jobs than asked for means that nothing
        is due beyond. Returns the jobs in the order of the turns, where there are any.

        A claim that walked far to find little (jobs of names nobody knows here) is not repeated at once. `sent`: when
        it was asked for; now, if nothing is said. `lanes`: all of which marks are known, if none are said.
        """
        now = time.monotonic()
        sent = now if sent is None else sent
        if self._in_turn is None:
            lanes, is_short = lanes or list(self._marks.values()), len(jobs) < asked
            self.heads.came_to(reached(jobs, is_short, lanes))
            found, ran_out = list(jobs), {key_of(mark) for mark in lanes} if is_short else set[Key]()
        else:
            found, ran_out = self._claimed_in_turn(self._in_turn, jobs, lanes)
        for key, job in {(job.priority, job.lane): job for job in jobs}.items():
            if key in self._marks:
                self._marks[key] = Mark(job.priority, job.run_at_us, job.id, job.lane)
        more = not self._marks.keys() <= ran_out
        for key in ran_out:
            if more or key[1] == SHARE:
                self._give_up(key)
        more = self._lower_to_hints(sent) or more
        self._dry = not more
        self._note_dry(jobs, now - sent)
        return found

    def _claimed_in_turn(
        self, priority: int, jobs: Sequence[Claimed], lanes: Sequence[Mark]
    ) -> tuple[list[Claimed], set[Key]]:
        """The jobs in the order of the turns, and which lanes have nothing more to claim."""
        turns = self._turns_of(priority)
        found, short = turns.claimed(jobs)
        self.heads.came_to(key_of(mark) for mark in lanes)
        ran_out = {(priority, lane) for lane in short}
        return found, {*ran_out, (priority, SHARE)} if turns.is_over else ran_out

    def _note_dry(self, jobs: Sequence[Claimed], cost_s: float) -> None:
        """When to look again, if nothing is thought to be due any more."""
        if jobs:
            # What the hint told of was not locked: the quick look would stand in the way of the next claim.
            self._looks_left = self._looks_left[-1:]
        if self._dry:
            if self._looks_left:
                self._look_by(self._next_look())
            self._costs_s = (self._costs_s[0], self._costs_s[1] + cost_s)
            self._sweep_at = by_beat(time.monotonic(), self._sweep_pause_s(self._poll_max_s))

    def takes_turns(self, key: Key) -> bool:
        """Whether turns decide who is next there."""
        return (key[0], SHARE) in self._marks or key[1].startswith(SHARE)

    def stays_locked(self) -> None:
        """What was passed over could not be had: look again, not at once."""
        self._look_by(time.monotonic() + LOCKED_AGAIN_S)

    def _look_by(self, at: float) -> float:
        """Look then, or sooner if something was due before; returns when."""
        self._due_at = at if self._due_at is None else min(self._due_at, at)
        return self._due_at

    def _give_up(self, key: Key) -> None:
        """Nothing is due in this lane beyond its mark."""
        if (mark := self._marks.pop(key, None)) is not None:
            self._left_us[key] = mark.run_at_us

    def _lower(self, mark: Mark) -> None:
        key = key_of(mark)
        self._marks[key] = earlier(mark, self._marks.get(key))
        turns = self._turns.get(mark.priority)
        if turns is not None and mark.lane == SHARE and mark.priority != self._looks_at:
            from_us = max(0, mark.run_at_us - STORED_US_MAX)  # its commit may have taken so long
            turns.restart(from_us if turns.is_over else min(from_us, turns.from_us))
        elif turns is not None and mark.lane == ANYBODYS:
            turns.anybodys_came()

    def _lower_to_hints(self, since: float) -> bool:
        """The answer to what was asked then has set the marks again: what came meanwhile may lie behind them. Returns
        whether anything came."""
        missed = self._told.missed(since)
        for mark in missed:
            self._lower(mark)
        return bool(missed)

    def _next_look(self) -> float:
        look_at = time.monotonic() + self._look_pause_s(self._looks_left[0])
        self._looks_left = self._looks_left[1:]
        return look_at

    def _look_pause_s(self, least_s: float) -> float:
        return max(least_s, LOOK_SHARE * (min(self._costs_s) - CHEAP_S))

    def _sweep_pause_s(self, least_s: float) -> float:
        # The lesser of two costs: one look that waited for a lock or a busy machine says nothing about the next.
        return max(least_s, min(SWEEP_S_MAX, SWEEP_SHARE * min(self._costs_s)))

    def pause_s(self, now: float) -> float:
        """How long until this queue deserves another look, when no wake-up comes."""
        if not self._dry:
            return self.limit.pause_s(now)
        due = [at for at in (self._sweep_at, self._due_at) if at is not None]
        return max(0.0, min(due) - now)
