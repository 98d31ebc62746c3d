"""What the gate leaves out of tests that are alike."""

from __future__ import annotations

from tests.kit.part import part_of


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

    assert len(part_of(points)) == 4
    assert part_of(points) < points
