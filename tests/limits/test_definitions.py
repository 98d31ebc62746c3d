"""What a limit may say: everything else is refused where it is written, and nothing is stored."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from fencerow import InvalidInput
from fencerow.errors import WrongCall
from fencerow.limits import Limit, Rate
from fencerow.limits.client import once_each
from fencerow.limits.errors import LimitConflict
from fencerow.limits.pacing import Pace
from fencerow.limits.rate import Breaker

FULL = Limit(
    "github",
    at_once=10,
    rate=Rate(100, per_s=60, burst=5),
    hours=("mon-fri 09:00-17:00 Europe/Berlin", "sat 10:00-12:00"),
    breaker=Breaker(5, timedelta(minutes=1), stop_s=30, trials=2),
    per_key=True,
    version=3,
)


def test_a_limit_is_read_back_as_it_was_stored() -> None:
    assert Limit.of_document("github", FULL.document(), 3) == FULL
    assert Limit.of_document("x", '{"at_once":1}') == Limit("x", at_once=1)


@pytest.mark.parametrize(
    ("text", "pace"),
    [
        ("1/s", Pace(1_000_000)),
        ("100/min", Pace(600_000)),
        ("3/s", Pace(333_334)),  # never faster than it says
        ("5/10s", Pace(2_000_000)),
        ("0.5/h", Pace(7_200_000_000)),
        ("10 / s", Pace(100_000)),
    ],
)
def test_a_rate_is_read_as_people_write_it(text: str, pace: Pace) -> None:
    assert Rate.parse(text).pace == pace


WRONG: list[Callable[[], Any]] = [
    lambda: Limit("x"),
    lambda: Limit("x", at_once=0),
    lambda: Limit("x", at_once=-1),
    lambda: Limit("x", at_once=True),
    lambda: Limit("x", at_once=1.5),  # type: ignore[arg-type]
    lambda: Limit("x", at_once=1, version=0),
    lambda: Limit("", at_once=1),
    lambda: Limit("a b", at_once=1),
    lambda: Limit("x\n", at_once=1),
    lambda: Limit("a:b", at_once=1),
    lambda: Limit("x/", at_once=1),
    lambda: Limit("fleet/x", at_once=1),
    lambda: Limit("queue:", at_once=1),
    lambda: Limit("x", rate="1/s"),  # type: ignore[arg-type]
    lambda: Limit("x", breaker=5),  # type: ignore[arg-type]
    lambda: Limit("x/y", at_once=1, per_key=True),
    lambda: Limit("fleet", at_once=1, per_key=True),
    lambda: Limit("x", hours="9-17"),
    lambda: Limit("x", hours="25:00-26:00"),
    lambda: Limit("x", hours="24:00-01:00"),
    lambda: Limit("x", hours="mon-foo 09:00-17:00"),
    lambda: Limit("x", hours="09:00-17:00 Europe/Atlantis"),
    lambda: Limit("x", hours="09:00-17:00 ../../etc/passwd"),
    lambda: Limit("x", hours=["09:00-10:00"] * 21),
    lambda: Limit.of_document("x", "[]"),
    lambda: Limit.of_document("x", '{"at_once":0}'),
    lambda: Limit.of_document("x", '{"at_once":1,"more":1}'),
    lambda: Rate(0),
    lambda: Rate(-1),
    lambda: Rate(float("nan")),
    lambda: Rate(1, per_s=0),
    lambda: Rate(1, burst=0),
    lambda: Rate(1, burst=2, strict=True),
    lambda: Rate(100_000),  # below the resolution
    lambda: Rate(1, per_s=1e12),
    lambda: Rate.parse("fast"),
    lambda: Rate.parse("1/fortnight"),
    lambda: Rate.parse("-1/s"),
    lambda: Breaker(0, 1),
    lambda: Breaker(1, 0),
    lambda: Breaker(1, 1, trials=0),
    lambda: Breaker(1, 1, stop_s=float("inf")),
    lambda: Breaker.parse("5"),
]


@pytest.mark.parametrize("made", WRONG, ids=range(len(WRONG)))
def test_what_makes_no_sense_is_refused_at_once(made: Callable[[], Any]) -> None:
    with pytest.raises(InvalidInput) as refused:
        made()

    assert refused.value.why and refused.value.fix


def test_one_program_declares_a_limit_once() -> None:
    mail = Limit("queue:mail", at_once=2)
    assert once_each([mail, mail]) == (mail,)
    with pytest.raises(LimitConflict, match="queue:mail"):
        once_each([mail, Limit("queue:mail", at_once=1)])
    with pytest.raises(InvalidInput):
        once_each(["queue:mail"])  # type: ignore[list-item]


@pytest.mark.parametrize("word", ["slots", "concurrency"])
def test_the_word_for_a_worker_is_answered_with_that_for_a_limit(word: str) -> None:
    with pytest.raises(WrongCall, match=rf"(?s)Limit\(\) was given '{word}'.*write at_once="):
        Limit("github", **{word: 4})  # type: ignore[arg-type]
