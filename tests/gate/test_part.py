"""What the gate leaves out of tests that are alike."""

from __future__ import annotations

import pytest

from tests.kit import part
from tests.kit.part import is_dear, part_of
from tools.dear import dear


def test_of_tests_that_are_alike_the_same_part_is_played() -> None:
    alike = [f"tests/limits/test_x.py::test_{n}[{engine}-7]" for n in range(40) for engine in ("lite", "pg")]
    whole = [each.replace("limits", "core/store") for each in alike]
    other = ["tests/limits/test_x.py::test_0[7]", "tests/limits/test_x.py::test_0[8]"]

    part = part_of(alike)

    assert len(part) == 40 == len({each.partition("[")[0] for each in part}), "one engine of each test"
    assert 10 < sum("lite" in each for each in part) < 30, "either engine has its share"
    assert part_of(reversed([*alike, *whole, *other])) == part | {*whole, *other}


def test_what_has_no_sql_of_its_own_is_played_on_postgresql_one_time_in_eight() -> None:
    alike = [
        f"tests/cli/test_x.py::test_{n}[{engine}]" for n in range(400) for engine in ("sqlite", "postgres")
    ]

    part = part_of(alike)

    assert len(part) == 400
    assert 35 < sum("postgres" in each for each in part) < 65


def test_of_the_points_of_a_way_a_few_are_played_whatever_their_words() -> None:
    points = {f"tests/core/worker/test_strikes.py::test_0[{point}]" for point in range(16)}

    assert len(part_of(points)) == 2
    assert part_of(points) < points


def test_what_is_dear_on_one_engine_is_played_on_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(part, "DEAR", {"tests/a/test_x.py::test_0[postgres]", "tests/a/test_x.py::test_1"})

    assert is_dear("tests/a/test_x.py::test_0[7-postgres]") and not is_dear(
        "tests/a/test_x.py::test_0[7-lite]"
    )
    assert is_dear("tests/a/test_x.py::test_1[lite]")


def test_dear_is_what_costs_much_shows_no_promise_and_has_a_cheaper_one_beside_it() -> None:
    costs = [
        "0.9 tests/a/test_x.py::test_named[lite]",
        "0.5 tests/a/test_x.py::test_both[lite]",
        "2.0 tests/a/test_x.py::test_both[pg]",
        "0.1 tests/a/test_x.py::test_one[lite]",
        "0.7 tests/a/test_x.py::test_one[pg]",
        "0.6 tests/a/test_x.py::test_cheapest[postgres]",
        "0.8 tests/a/test_y.py::test_alone",
    ]

    assert dear(costs, {"tests/a/test_x.py::test_named"}, 0.2) == [
        "tests/a/test_x.py::test_both",
        "tests/a/test_x.py::test_one[postgres]",
    ]
