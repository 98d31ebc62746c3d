"""What the claimer remembers of a queue, and when it looks again."""

from __future__ import annotations

import pytest
from msgspec import structs

from fencerow.core.model.job import QueueLane
from fencerow.core.store.claims import NIL, Mark
from fencerow.core.worker import marks
from fencerow.core.worker.marks import CHEAP_S, LOOK_SHARE, LOOKS_AFTER_HINT_S, QueueView
from tests.core.worker.test_parts import claimed


class Clock:
    """A microsecond passes between two looks at it, and no more than a test lets pass."""

    def __init__(self) -> None:
        self._now = 1000.0

    def monotonic(self) -> float:
        self._now += 1e-6
        return self._now

    def pass_(self, seconds: float) -> None:
        self._now += seconds


clock = Clock()


@pytest.fixture(autouse=True)
def _no_time_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(marks, "time", clock)
    monkeypatch.setattr(marks, "by_beat", lambda now, pause_s: now + pause_s)  # the next may come at once


def view_of_an_empty_queue() -> QueueView:
    view = QueueView("mail", 1.0)
    view.swept([], 0, clock.monotonic())
    view.swept([QueueLane(0, 10_000_000)], 5_000_000, clock.monotonic())
    return view


def test_a_job_stored_just_now_is_looked_for_from_the_look_on_that_found_nothing() -> None:
    """It was given its instant before its commit, and the hint came after: a mark at the hint would lie behind it."""
    view = view_of_an_empty_queue()
    view.swept([], 0, clock.monotonic())
    stored_us = 5_000_000  # in the instant of the look; its commit takes half a second
    clock.pass_(0.5)
    view.hint(0, None)
    assert stored_us - 200_000 < view.marks()[0].run_at_us < stored_us

    view.swept([], 0, clock.monotonic())
    clock.pass_(30.0)
    view.hint(0, None)
    assert view.marks()[0].run_at_us > 34_000_000, (
        "what committed long ago is found by the look after the hint"
    )


def test_a_job_stored_just_now_lowers_a_mark_by_what_commits_overtake_one_another() -> None:
    view = view_of_an_empty_queue()
    clock.pass_(6.0)
    view.swept([QueueLane(0, 10_000_000)], 11_000_000, clock.monotonic())
    view.claimed([structs.replace(claimed(), run_at_us=11_000_000)], 1)

    view.hint(0, None)
    assert 10_900_000 < view.marks()[0].run_at_us < 11_000_000

    clock.pass_(9.0)
    earlier = view.marks()[0]
    view.hint(0, None)
    assert view.marks() == [earlier]


def test_a_lane_whose_mark_was_given_up_is_looked_at_from_there() -> None:
    view = view_of_an_empty_queue()
    view.swept([QueueLane(0, 4_000_000), QueueLane(7, 4_000_000)], 5_000_000, clock.monotonic())
    view.claimed([structs.replace(claimed(), run_at_us=4_900_000)], 5, lanes=[Mark(0, 3_999_999, NIL)])
    assert [mark.priority for mark in view.marks()] == [7]

    view.hint(0, None)

    assert 4_700_000 < view.marks()[1].run_at_us < 4_900_000


def test_a_hint_whose_claim_finds_nothing_is_looked_after_soon() -> None:
    """The row may have been locked for an instant, by somebody who marked it as awaited: a claim skips it."""
    view = view_of_an_empty_queue()
    view.hint(0, 1)

    pauses: list[float] = []
    for _ in (*LOOKS_AFTER_HINT_S, None):
        assert view.marks() or pauses
        view.claimed([], 10)
        pauses.append(view.pause_s(clock.monotonic()))
        view._due_at = None

    assert [pause_s <= look_s for pause_s, look_s in zip(pauses, LOOKS_AFTER_HINT_S, strict=False)] == [
        True,
        True,
    ]
    assert pauses[-1] > 0.5, "then the sweep is soon enough"


def test_a_hint_whose_claim_finds_a_job_is_looked_after_once_and_later() -> None:
    """Others of the burst may have been locked; but a look at once would stand before the next claim."""
    view = view_of_an_empty_queue()
    view.hint(0, 1)
    view.claimed([claimed()], 10)

    quick_s, patient_s = LOOKS_AFTER_HINT_S
    assert quick_s < view.pause_s(clock.monotonic()) <= patient_s
    view._due_at = None
    view.claimed([], 10)
    assert view.pause_s(clock.monotonic()) > 0.5


def test_where_each_look_is_dear_the_looks_after_hints_are_few() -> None:
    """Beside very many jobs that nobody knows here: each look from the beginning walks over all of them."""
    view = view_of_an_empty_queue()
    for _ in range(2):
        began = clock.monotonic()
        clock.pass_(0.1)
        view.swept([], 0, began)
    view.hint(0, 1)
    view.claimed([claimed()], 10)
    assert view.pause_s(clock.monotonic()) == pytest.approx(LOOK_SHARE * (0.1 - CHEAP_S), abs=0.01)
    assert not view.is_idle()


def test_while_a_hint_is_still_looked_after_it_is_not_idle() -> None:
    """A claim that was under way when the hint came finds nothing; who runs until nothing is due must not go yet."""
    view = QueueView("mail", 1.0)
    view.swept([], 1, clock.monotonic())
    assert view.is_idle()

    view.hint(0, 1)
    view.claimed([], 10)
    assert not view.is_idle()

    view.claimed([], 10)
    view.swept([], 1, clock.monotonic())
    assert view.is_idle()


def test_after_a_slow_answer_a_hint_of_what_is_due_is_no_hint_of_the_future() -> None:
    """The database told its time early in the two seconds; what is queued right after the answer is due."""
    view = QueueView("mail", 60.0)
    view.swept([], 100_000_000, clock.monotonic() - 2.0)
    view.hint(0, 101_000_000)

    assert [mark.priority for mark in view.marks()] == [0]
    assert view.pause_s(clock.monotonic()) == 0.0


def test_what_looks_due_a_little_too_early_is_found_all_the_same() -> None:
    """The database may as well have told its time late: the claim brings nothing, and the next look says when."""
    view = QueueView("mail", 60.0)
    view.swept([], 100_000_000, clock.monotonic() - 2.0)
    view.hint(0, 101_000_000)
    view.claimed([], 10)
    assert view.pause_s(clock.monotonic()) <= LOOKS_AFTER_HINT_S[0]

    view.swept([QueueLane(0, 101_000_000)], 100_100_000, clock.monotonic())
    assert view.pause_s(clock.monotonic()) <= 0.9


def test_a_look_that_found_nothing_after_a_hint_ends_the_wait_for_it() -> None:
    """It shows locked jobs too, so nothing is left to look for; else a worker that runs until idle never ends."""
    view = QueueView("mail", 1.0)
    view.hint(0, 1)
    view.claimed([], 10)
    view.swept([], 1, clock.monotonic())
    assert view.is_idle()


def test_a_hint_that_came_during_a_look_is_looked_after() -> None:
    view = QueueView("mail", 1.0)
    began = clock.monotonic()
    view.hint(0, 1)
    view.swept([], 1, began)
    assert not view.is_idle()
    assert view.pause_s(clock.monotonic()) <= LOOKS_AFTER_HINT_S[0]
    view.swept([], 1, clock.monotonic())
    assert view.is_idle()


def test_a_hint_during_a_full_claim_lowers_the_mark_that_the_answer_sets() -> None:
    """Its job may lie before the last one claimed: it keeps an early place, or has just been released."""
    view = view_of_an_empty_queue()
    view.hint(0, 4_900_000)
    sent = clock.monotonic()
    assert view.marks()
    view.hint(0, 1_000_000)
    view.hint(5, 2_000_000)
    last = structs.replace(claimed(), run_at_us=4_000_000)
    view.claimed([last], 1, sent)

    assert [(mark.priority, mark.run_at_us) for mark in view.marks()] == [(5, 1_999_999), (0, 999_999)]


def test_a_hint_during_a_claim_that_comes_back_short_is_followed_by_another_at_once() -> None:
    """Its job may have been stored behind what the claim saw; the look after the hint comes later."""
    view = view_of_an_empty_queue()
    view.hint(0, 4_000_000)
    sent = clock.monotonic()
    view.hint(0, 4_500_000)
    view.claimed([], 5, sent)
    assert view.has_more and view.marks()

    view.claimed([], 5, clock.monotonic())
    assert not view.has_more


def test_one_that_came_before_the_claim_was_sent_does_not() -> None:
    view = view_of_an_empty_queue()
    view.hint(0, 1_000_000)
    sent = clock.monotonic() + 0.001
    last = structs.replace(claimed(), run_at_us=4_000_000)
    view.claimed([last], 1, sent)

    assert view.marks() == [Mark(0, 4_000_000, last.id)]


def test_a_hint_during_a_look_is_not_forgotten_by_its_answer() -> None:
    """Neither of what is due now, in a lane that the look did not see, nor of what is due soon."""
    view = view_of_an_empty_queue()
    began = clock.monotonic()
    view.hint(7, 1_000_000)
    view.hint(0, 5_500_000 + int((clock.monotonic() - began) * 1e6))
    view.swept([QueueLane(0, 4_000_000)], 5_000_000, began)

    assert [mark.priority for mark in view.marks()] == [7, 0]
    view.claimed([], 10)
    assert view.pause_s(clock.monotonic()) < 0.6
    view._looks_left = ()
    view.claimed([], 10)
    assert view.pause_s(clock.monotonic()) < 0.6, "when the job of the hint is due"
