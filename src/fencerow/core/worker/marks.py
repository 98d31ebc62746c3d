"""What the claimer remembers of one queue: its lanes, their low-water marks, and when something is due.

A mark spares the claim the dead entries at the head of its lane. It is only a hint: what commits late
behind it is found by the sweep, which starts from the beginning every max(1 s, 50 times its cost); what
we put behind it ourselves lowers it through a wake-up.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Sequence

from fencerow.core.model.job import Claimed, Lane
from fencerow.core.model.turns import RingPlace
from fencerow.core.store.attempts import NIL, Mark
from fencerow.core.worker.ageing import STRICT, Ageing

SWEEP_S_MIN = 1.0
SWEEP_SHARE = 50.0
SWEEP_S_MAX = 5.0  # whatever it costs: without wake-ups this is how late work may be found
# When to look again after a hint whose claim came back short: the row may have been locked for an instant, by
# somebody who marked it as awaited or by a cancel, and a claim skips what is locked.
LOOKS_AFTER_HINT_S = (0.008, 0.06)
LOCKED_AGAIN_S = 0.5  # after a claim that waited for a locked row in vain


class QueueView:
    """One queue as this worker sees it. All times are this host's monotonic seconds."""

    def __init__(self, queue: str, poll_max_s: float, ageing: Ageing = STRICT) -> None:
        self.queue = queue
        self._poll_max_s = poll_max_s
        self._ageing = ageing
        self.suspect_due_at: float | None = None
        self._marks: dict[int, Mark] = {}
        self._dry = True
        self._due_at: float | None = None
        self._sweep_at = 0.0
        self._looks_left: tuple[float, ...] = ()
        self._hinted_at = 0.0
        self._costs_s = (0.0, 0.0)  # of the last two looks
        self._ahead_us: int | None = None  # the database's clock minus this host's monotonic one
        # What hints told of, and when the last of them came: an answer that was on its way then knows nothing of it.
        self._hinted: dict[int, tuple[Mark, float]] = {}
        self._hinted_due: tuple[float, float] | None = None
        self.is_limited = False
        self.shared: set[int] = set()  # priorities of lanes in which shares have jobs
        self.has_labelled = False  # jobs wait there for labels that this worker carries
        self.places: dict[int, RingPlace] = {}  # where their turns stand
        self._hinted_labelled = -1.0
        self._heads: dict[int, int] = {}  # of lanes, when what was due first there at the last look was due
        self._passed: set[int] = set()  # lanes of which a claim has taken what comes behind their first
        self._closed_until = 0.0  # the limit lets nothing through before
        self._full_until = 0.0  # it is full; an end may make room sooner

    def wants_sweep(self, now: float) -> bool:
        """Whether the lanes should be looked at from the beginning."""
        return now >= self._sweep_at or (self._due_at is not None and now >= self._due_at)

    def is_untold(self, now: float) -> bool:
        """Whether nothing but its interval asks for a look from the beginning now: no hint has come, nothing was known
        to become due, and it is neither the first look nor one after hints may have been lost."""
        return self._dry and self._sweep_at > 0 and (self._due_at is None or now < self._due_at)

    def swept(self, lanes: Iterable[Lane], now_us: int, began: float, due_us: int = 0) -> None:
        """Start every lane from its first queued job, and note what is due later; `due_us` may lie beyond now."""
        now = time.monotonic()
        if now_us:
            # As if the clock had been read when the question was sent. Too early a look finds nothing and looks again;
            # had it been read when the answer came, a hint of what is due might look like the future.
            self._ahead_us = now_us - int(began * 1e6)
        now_us = max(now_us, due_us)
        marks: dict[int, Mark] = {}
        self._heads, self._passed = {}, set()
        later: list[float] = []
        suspects: list[float] = []
        self.is_limited = False
        self.shared = set()
        self.has_labelled = self._hinted_labelled >= began
        for lane in lanes:
            self.is_limited |= lane.limited
            if lane.shared and lane.priority is not None:
                self.shared.add(lane.priority)
            self.has_labelled |= lane.labelled
            due_at = now + (lane.first_us - now_us) / 1e6
            if lane.priority is None:
                suspects.append(due_at)
            elif lane.first_us <= now_us:
                # Not from the lane's beginning: the look has just walked over the dead entries before this job.
                mark = Mark(lane.priority, lane.first_us - 1, NIL)
                marks[lane.priority] = min(marks.get(lane.priority, mark), mark, key=_place)
                if not lane.labelled:
                    self._heads[lane.priority] = lane.first_us
            if due_at > now:
                later.append(due_at)
        self.suspect_due_at = min(suspects, default=None)
        if self._hinted_due is not None and self._hinted_due[1] >= began:
            later.append(self._hinted_due[0])
        self._hinted_due = None
        self._marks = marks
        self._lower_to_hints(began)
        self._dry = not self._marks
        if self._dry and self._hinted_at < began:
            self._looks_left = ()  # it would have shown what is locked as well: what the hint told of is gone
        elif self._dry and self._looks_left:
            later.append(self._next_look())
        self._due_at = min(later, default=None)
        self._costs_s = (self._costs_s[1], now - began)
        self._sweep_at = now + self._sweep_pause_s(self._poll_max_s if self._dry else SWEEP_S_MIN)

    def hint(self, priority: int, run_at_us: int, *, labelled: bool = False) -> None:
        """Somebody queued a job: lower the lane's mark, or remember when it is due. `labelled`: it waits for a label
        that this worker carries."""
        now = time.monotonic()
        if labelled:
            self.has_labelled, self._hinted_labelled = True, now
        if self._ahead_us is not None:
            due_at = (run_at_us - self._ahead_us) / 1e6
            if due_at > now:
                self._due_at = due_at if self._due_at is None else min(self._due_at, due_at)
                self._hinted_due = self._due_at, now
                return
        else:
            # Without the database's clock a later start cannot be told from one that is due.
            self._sweep_at = 0.0
        self._looks_left = LOOKS_AFTER_HINT_S
        self._hinted_at = now
        lowered = Mark(priority, run_at_us - 1, NIL)
        earlier, _ = self._hinted.get(priority, (lowered, now))
        self._hinted[priority] = min(earlier, lowered, key=_place), now
        self._lower(lowered)
        self._dry = False

    def is_idle(self) -> bool:
        """Whether the last look from the beginning found nothing due, and no hint has come that it may have missed."""
        soon = time.monotonic() + LOOKS_AFTER_HINT_S[-1]
        looks = bool(self._looks_left) or (self._due_at is not None and self._due_at <= soon)
        return self._dry and self._sweep_at > 0 and self.suspect_due_at is None and not looks

    def look_again(self) -> None:
        """Hints may have been lost: sweep at once."""
        self._sweep_at = 0.0

    def marks(self) -> list[Mark]:
        """Where the next claim starts, the lane whose turn it is first; empty when nothing is thought to be due.

        A mark lies at the first job of its lane or just before it, so its instant is that job's, as far as is known.
        """
        if self._dry:
            return []
        return sorted(self._marks.values(), key=self._rank)

    def plain_marks(self) -> list[Mark]:
        """Those of `marks` that one claim may take from: lanes in which shares have jobs are served one by one."""
        marks = self.marks()
        end = next((number for number, mark in enumerate(marks) if mark.priority in self.shared), len(marks))
        return marks[: max(1, end)]

    def _rank(self, mark: Mark) -> tuple[float, int]:
        return self._ageing.rank(mark.priority, mark.run_at_us), -mark.priority

    def claimed(
        self, jobs: Sequence[Claimed], asked: int, sent: float | None = None, lanes: Sequence[Mark] = ()
    ) -> None:
        """Move the marks past what was claimed; fewer than asked for means that nothing is due beyond them.

        A claim that walked far to find little (jobs of names nobody knows here) is not repeated at once. `sent`: when
        it was asked for; now, if nothing is said. `lanes`: where it began, if that was not in all `marks`.
        """
        now = time.monotonic()
        sent = now if sent is None else sent
        # They come in the order of their lanes. Marks count only for those that wait for no label.
        last = {job.priority: job for job in jobs if job.label is None}
        for priority, job in last.items():
            self._marks[priority] = Mark(priority, job.run_at_us, job.id)
            if job.share is not None:
                self.shared.add(priority)
        short = len(jobs) < asked
        self._passed.update(_reached(jobs, short, lanes))
        more = short and 0 < len(lanes) < len(self._marks)
        if more:
            for mark in lanes:
                self._marks.pop(mark.priority, None)
        self._lower_to_hints(sent)
        self._dry = short and not more
        if jobs:
            # What the hint told of was not locked. The quick look would only stand in the way of the next claim.
            self._looks_left = self._looks_left[-1:]
        if self._dry and self._looks_left:
            look_at = self._next_look()
            self._due_at = look_at if self._due_at is None else min(self._due_at, look_at)
        if self._dry:
            self._costs_s = (self._costs_s[0], self._costs_s[1] + now - sent)
            self._sweep_at = now + self._sweep_pause_s(self._poll_max_s)

    def took(self, jobs: Iterable[Claimed]) -> None:
        """These were claimed: what was first in their lanes may be among them."""
        for job in jobs:
            if job.run_at_us <= self._heads.get(job.priority, -1):
                del self._heads[job.priority]

    def passed_over(self) -> list[int]:
        """The lanes whose first job was due at the last look, and of which claims have only taken what comes behind it:
        somebody may have locked it, or it is for others. One that no claim has come to yet waits for its turn."""
        return sorted(self._passed & self._heads.keys(), reverse=True)

    def took_up(self, priority: int) -> None:
        """Somebody asks for the first job of this lane by itself: once after each look."""
        self._heads.pop(priority, None)

    def stays_locked(self) -> None:
        """What was passed over could not be had: look again, but not at once."""
        look_at = time.monotonic() + LOCKED_AGAIN_S
        self._due_at = look_at if self._due_at is None else min(self._due_at, look_at)

    def limit_met(self, again_s: float | None) -> None:
        """A limit lets no more through: for so long, or (None) until a job of the queue has ended somewhere."""
        now = time.monotonic()
        if again_s is None:
            self._full_until = now + self._poll_max_s
        else:
            self._closed_until = now + min(again_s, self._poll_max_s)

    def made_room(self) -> bool:
        """A job has ended: look at once, if the limit was full. Returns whether it was."""
        was_full = self._full_until > time.monotonic()
        self._full_until = 0.0
        return was_full

    def is_closed(self, now: float) -> bool:
        """Whether a limit is known to let nothing through yet, whatever ends."""
        return now < self._closed_until

    def _lower(self, mark: Mark) -> None:
        known = self._marks.get(mark.priority)
        if known is None or _place(known) > _place(mark):
            self._marks[mark.priority] = mark

    def _lower_to_hints(self, since: float) -> None:
        """The answer to what was asked then has set the marks anew: what came meanwhile may lie behind them."""
        for mark, told_at in self._hinted.values():
            if told_at >= since:
                self._lower(mark)
        self._hinted.clear()

    def _next_look(self) -> float:
        look_at = time.monotonic() + self._looks_left[0]
        self._looks_left = self._looks_left[1:]
        return look_at

    def _sweep_pause_s(self, least_s: float) -> float:
        # The lesser of two costs: one look that waited for a lock or a busy machine says nothing about the next.
        return max(least_s, min(SWEEP_S_MAX, SWEEP_SHARE * min(self._costs_s)))

    def pause_s(self, now: float) -> float:
        """How long until this queue deserves another look, when no wake-up comes."""
        if not self._dry:
            return max(0.0, self._closed_until - now, self._full_until - now)
        due = [at for at in (self._sweep_at, self._due_at) if at is not None]
        return max(0.0, min(due) - now)


class Look:
    """What is known of the queues that one pool serves, and what wakes its claimer. Used on the event loop only."""

    def __init__(self, poll_max_s: float, ageing: Ageing = STRICT) -> None:
        self.views: dict[str, QueueView] = {}
        self._ageing = ageing
        self.woken = asyncio.Event()  # the claimer's loop waits for it
        self._poll_max_s = poll_max_s

    def follow(self, queues: Sequence[str]) -> None:
        """These are served from now on; what is known of those that stay is kept."""
        kept = self.views
        self.views = {
            queue: kept.get(queue) or QueueView(queue, self._poll_max_s, self._ageing) for queue in queues
        }

    def wake(self) -> None:
        """Look at once, without knowing more than that there may be reason to."""
        self.woken.set()

    def hint(self, queue: str, priority: int, run_at_us: int, *, labelled: bool = False) -> None:
        """A job was put there: look, from no later than its place on."""
        view = self.views.get(queue)
        if view is not None:
            view.hint(priority, run_at_us, labelled=labelled)
            self.woken.set()

    def made_room(self) -> None:
        """Jobs have ended: where a limit was full, look at once."""
        for view in self.views.values():
            if view.is_limited and view.made_room():
                self.woken.set()

    def look_again(self) -> None:
        """Hints may have been lost: sweep every queue at once."""
        for view in self.views.values():
            view.look_again()
        self.woken.set()

    def any_suspect(self) -> bool:
        """Whether a suspect is known of in any queue."""
        return any(view.suspect_due_at is not None for view in self.views.values())

    def is_idle(self) -> bool:
        """Whether a look from the beginning found nothing due in any queue."""
        return all(view.is_idle() for view in self.views.values())


def _place(mark: Mark) -> tuple[int, str]:
    return mark.run_at_us, mark.id


def _reached(jobs: Sequence[Claimed], short: bool, lanes: Sequence[Mark]) -> list[int]:
    """Of the lanes in whose order a claim took these jobs, those from which it took all that it could, or some."""
    in_order = [mark.priority for mark in lanes]
    if short:
        return in_order
    last = {job.priority for job in jobs}
    return in_order[: max((place for place, each in enumerate(in_order, 1) if each in last), default=0)]
