"""The models hold, and each guard that is taken out breaks one of their promises."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.models.spin import MODELS, judged, verify

# By model: the ways in which it is verified whole, and its controls: the way, and the guard that is taken out.
HOLDS: dict[str, dict[str, tuple[str, ...]]] = {
    "lease": {"healthy": (), "busy": ("BUSY",)},
    "reclaim": {"": ()},
    "mutex": {"": ()},
    "sequencer": {
        "reader": ("READER", "SEQUENCERS=1"),
        "one at a time": ("READER", "SEQUENCERS=1", "LIMIT=1", "NO_KEY"),
        "two": (),
    },
    "suspects": {"": ()},
}
CONTROLS: dict[str, dict[str, tuple[str, ...]]] = {
    "lease": {
        "healthy": ("NO_GAP", "LONG_GAP", "NO_RUN", "NO_LOOK", "NO_END", "GAPLESS_FROM_SENT"),
        "busy": ("NO_DEADLINE", "BELIEF_FROM_ANSWER", "NO_LOOK", "NO_END"),
    },
    "reclaim": {
        "": ("NO_ATTEMPT", "NO_HOLDER", "NO_TWICE", "ANTI_JOIN", "NO_COMPARE", "SWEPT_ONCE", "NO_ADOPT"),
    },
    "mutex": {
        "": ("NO_STALE", "NO_SHARE", "NO_TOKEN", "BY_KEY", "NO_FLOOR", "NO_LIFT", "BELIEF_FROM_ANSWER"),
    },
    "sequencer": {
        "reader": ("NO_GAPS", "BY_ID", "NUMBER_AFTER_ID", "NUMBER_BEFORE_LOOK", "NO_KEY_LOCK"),
        "one at a time": ("FULL_LOOK_CLOSES",),
        "two": ("NO_LOCK",),
    },
    "suspects": {"": ("NO_DOUBT", "GRANTED_AT_ONCE", "FRONT_FIRST", "NO_TURNS")},
}
GATED = ("reclaim", "mutex")  # the gate verifies these: a model changes only when somebody changes it
ENDS = ("reclaim",)  # no run of these goes on for ever
LEAST = 1_000  # fewer states, and a model shows nothing

needs_spin = pytest.mark.outside("Spin")


@needs_spin
@pytest.mark.parametrize(
    ("model", "way"),
    [
        pytest.param(model, way, marks=() if model in GATED else pytest.mark.prove)
        for model, ways in HOLDS.items()
        for way in ways
    ],
)
def test_it_holds(model: str, way: str, tmp_path: Path) -> None:
    verdict = verify(model, HOLDS[model][way], tmp_path)

    assert verdict.errors == 0 and verdict.complete, verdict.text
    assert verdict.states > LEAST, verdict.text


@needs_spin
@pytest.mark.prove
@pytest.mark.parametrize("model", ENDS)
def test_no_run_goes_on_for_ever(model: str, tmp_path: Path) -> None:
    verdict = verify(model, (), tmp_path, cycles=True)

    assert verdict.errors == 0 and verdict.complete, verdict.text


@needs_spin
@pytest.mark.prove  # a control asks whether the model can fail, and the code has no part in that
@pytest.mark.parametrize(
    ("model", "way", "guard"),
    [
        (model, way, guard)
        for model, ways in CONTROLS.items()
        for way, guards in ways.items()
        for guard in guards
    ],
)
def test_without_the_guard_it_does_not(model: str, way: str, guard: str, tmp_path: Path) -> None:
    verdict = verify(model, (*HOLDS[model][way], guard), tmp_path)

    assert verdict.errors > 0, verdict.text
    assert "assertion violated" in verdict.text


def test_each_model_and_each_of_its_guards_is_verified() -> None:
    """Where there is no Spin, too."""
    for path in MODELS.glob("*.pml"):
        controls = {guard for guards in CONTROLS[path.stem].values() for guard in guards}
        text = path.read_text("utf-8")
        marked = {
            line.split()[1] for line in text.splitlines() if "control" in line and line.startswith("#if")
        }
        assert path.stem in HOLDS
        assert controls >= {name for name in marked if name.isupper()}, path.name
        assert [guard for guard in controls if guard not in text] == []


@pytest.mark.parametrize(
    ("text", "complete"),
    [
        ("errors: 0\n 1234 states, stored\n", True),
        ("Warning: Search not completed\nerrors: 0\n 1234 states, stored\n", False),
        ("error: max search depth too small\nerrors: 0\n 1234 states, stored\n", False),
    ],
)
def test_a_search_that_was_cut_short_shows_nothing(text: str, complete: bool) -> None:
    verdict = judged(text)

    assert (verdict.complete, verdict.errors, verdict.states) == (complete, 0, 1234)
