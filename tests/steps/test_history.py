"""Code and history beside each other: what agrees is answered, what does not is named. Without a database."""

from __future__ import annotations

import pytest

from fencerow.errors import HistoryMismatch, StepTwice
from fencerow.steps.history import History
from fencerow.steps.model import Kind, Step


def remembered(*names: str, kind: Kind = Kind.STEP, beside: frozenset[str] = frozenset()) -> list[Step]:
    return [
        Step(name=name, kind=kind, seq=seq, result="1", beside=name in beside)
        for seq, name in enumerate(names, 1)
    ]


def run(history: History, *names: str) -> None:
    """Ask for steps one after the other."""
    for name in names:
        history.ask(name, Kind.STEP)
        history.left()


def test_the_same_steps_in_the_same_order_agree() -> None:
    run(History(remembered("a", "b")), "a", "b", "c")


@pytest.mark.parametrize(
    ("asked", "both"),
    [
        (("a", "x"), ("'x'", "'b'")),  # another one in its place
        (("b",), ("'b'", "'a'")),  # one was removed
        (("a", "c"), ("'c'", "'b'")),  # two were exchanged
    ],
)
def test_what_departs_is_named_on_both_sides(asked: tuple[str, ...], both: tuple[str, str]) -> None:
    with pytest.raises(HistoryMismatch) as caught:
        run(History(remembered("a", "b", "c")), *asked)

    assert all(name in caught.value.what for name in both), caught.value.what


def test_a_name_that_was_of_another_kind_departs() -> None:
    with pytest.raises(HistoryMismatch, match=r"step 'a' .* has sleep 'a'"):
        run(History(remembered("a", kind=Kind.SLEEP)), "a")


def test_a_step_that_was_never_remembered_leaves_a_gap() -> None:
    """It failed in the run before, and its handler went on."""
    history = History([Step(name="b", kind=Kind.STEP, seq=2, result="1")])

    run(history, "a", "b", "c")


def test_of_steps_that_ran_beside_one_another_names_alone_count() -> None:
    history = History(remembered("a", "b", "a2", "b2", beside=frozenset({"b"})))

    run(history, "a", "a2", "b", "b2")


def test_a_second_step_of_a_name_is_refused() -> None:
    history = History([])
    run(history, "a")
    with pytest.raises(StepTwice):
        run(history, "a")


def test_further_waits_have_numbers() -> None:
    history = History([])
    assert [history.numbered("sleep") for _ in range(3)] == ["sleep", "sleep 2", "sleep 3"]
