"""What is made of fires that nobody made in time."""

from __future__ import annotations

from fencerow.schedules.misfire import COUNTED_MAX, Catching, DueFires, Misfire, due
from fencerow.schedules.spec import Spec
from tests.schedules.instants import us, utc

QUARTERLY = Spec.parse({"interval_s": 900, "spread": False})
NOON = utc(2026, 11, 23, 12)
FIVE_HOURS_ON = NOON + us(5 * 3600)


def quarter(number: int) -> int:
    return NOON + us(900 * number)


def catch(misfire: Misfire, now: int, at_most: int = 10, grace_us: int = 0, next_us: int = NOON) -> DueFires:
    return due(QUARTERLY, "", next_us, now, Catching(misfire, at_most, grace_us))


def test_nothing_fires_before_its_time() -> None:
    assert [catch(policy, NOON - 1) for policy in Misfire] == [DueFires((), NOON, 0)] * 3


def test_on_time_every_policy_makes_the_fire() -> None:
    assert [catch(policy, NOON) for policy in Misfire] == [DueFires((NOON,), quarter(1), 0)] * 3


def test_all_makes_so_many_in_a_pass_and_the_rest_in_the_next() -> None:
    first = catch(Misfire.ALL, FIVE_HOURS_ON)
    second = catch(Misfire.ALL, FIVE_HOURS_ON, next_us=first.next_us)
    third = catch(Misfire.ALL, FIVE_HOURS_ON, next_us=second.next_us)

    assert first == DueFires(tuple(quarter(n) for n in range(10)), quarter(10), 0)
    assert second == DueFires(tuple(quarter(n) for n in range(10, 20)), quarter(20), 0)
    assert third == DueFires((quarter(20),), quarter(21), 0)


def test_one_makes_the_latest_and_counts_what_it_left_out() -> None:
    assert catch(Misfire.ONE, FIVE_HOURS_ON + 7) == DueFires((quarter(20),), quarter(21), 20)


def test_skip_leaves_out_what_is_late_by_more_than_the_grace() -> None:
    grace = us(60)

    assert catch(Misfire.SKIP, NOON + us(60), grace_us=grace) == DueFires((NOON,), quarter(1), 0)
    assert catch(Misfire.SKIP, NOON + us(60) + 1, grace_us=grace) == DueFires((), quarter(1), 1)
    assert catch(Misfire.SKIP, FIVE_HOURS_ON + us(60), grace_us=grace) == DueFires(
        (quarter(20),), quarter(21), 20
    )
    assert catch(Misfire.SKIP, FIVE_HOURS_ON + us(61), grace_us=grace) == DueFires((), quarter(21), 21)


def test_a_long_absence_is_counted_up_to_a_bound() -> None:
    """A fire a second for a year: the latest is found without a walk, and the count ends at its bound."""
    secondly, year = Spec.parse({"interval_s": 1, "spread": False}), us(365 * 86_400)

    for policy, made in ((Misfire.ONE, (NOON + year,)), (Misfire.SKIP, (NOON + year,))):
        found = due(secondly, "", NOON, NOON + year, Catching(policy, 10))
        assert found == DueFires(made, NOON + year + us(1), COUNTED_MAX)


def test_the_stored_instant_fires_even_if_it_lies_between_the_fires_of_a_changed_specification() -> None:
    odd = NOON + us(100)

    assert catch(Misfire.ALL, quarter(1), next_us=odd) == DueFires((odd, quarter(1)), quarter(2), 0)
    assert catch(Misfire.ONE, quarter(1) - 1, next_us=odd) == DueFires((odd,), quarter(1), 0)
    assert catch(Misfire.SKIP, odd, next_us=odd) == DueFires((odd,), quarter(1), 0)


def test_cron_is_caught_up_across_a_change_of_clocks() -> None:
    daily = Spec.parse({"cron": "30 2 * * *", "tz": "Europe/Berlin"})
    start = utc(2026, 3, 28, 1, 30)

    found = due(daily, "", start, utc(2026, 3, 30, 12), Catching(Misfire.ALL, 10))

    assert found.fires == (start, utc(2026, 3, 29, 1), utc(2026, 3, 30, 0, 30))
