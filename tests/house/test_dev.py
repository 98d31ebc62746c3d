"""`dev.py`: what its verbs play."""

from __future__ import annotations

import pytest

import dev


def test_a_verb_that_is_given_tests_of_its_folder_plays_these_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    played: list[list[str]] = []
    monkeypatch.setattr(dev, "test", lambda words, _fresh: played.append(words))

    for words in (["-x"], ["tests/proof/race/test_turns.py::test_one"]):
        dev.race(words, fresh=False)

    assert [[each for each in words if "proof" in each] for words in played] == [
        ["tests/proof/race"],
        ["tests/proof/race/test_turns.py::test_one"],
    ]
