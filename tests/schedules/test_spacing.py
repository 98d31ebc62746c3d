"""Evenly spaced fires and jitter: never nearer than stated, no drift, and the same on every host."""

from __future__ import annotations

import subprocess
import sys
from fractions import Fraction
from itertools import pairwise

from hypothesis import example, given, settings
from hypothesis import strategies as st

from fencerow.schedules.spec import Spec
from tests.schedules.instants import us, utc

START = utc(2026, 1, 1)
YEAR = us(365 * 86_400)
UNITS = {"minute": 60, "hour": 3600, "day": 86_400}
JITTER_MAX_S = 86_400  # more is refused

cheap = settings(max_examples=25, deadline=None)
instants = st.integers(utc(2020, 1, 1), utc(2040, 1, 1))
rates = st.fractions(Fraction(1, 1000), 60, max_denominator=1000)


@cheap
@given(rates, st.sampled_from(sorted(UNITS)), instants, st.text(max_size=5), st.booleans())
@example(Fraction(7), "hour", START, "", True)
def test_a_rate_has_its_count_in_every_stretch_of_time(
    rate: Fraction, per: str, start: int, seed: str, spread: bool
) -> None:
    spec = Spec.parse({"rate": str(rate), "per": per, "spread": spread})
    period = Fraction(us(UNITS[per])) / rate

    fires = spec.fires(start, start + int(period * 20), seed, 100)

    assert len(fires) in (19, 20, 21)
    assert all(abs(later - earlier - period) < 1 for earlier, later in pairwise(fires))


@cheap
@given(rates, instants, st.text(max_size=5))
def test_a_year_has_no_drift(rate: Fraction, start: int, seed: str) -> None:
    """The fire that is a year of periods later is later by just that, to the microsecond that rounding takes."""
    spec = Spec.parse({"rate": str(rate)})
    period = Fraction(us(3600)) / rate
    first = spec.next_after(start, seed)
    periods = int(YEAR / period)

    assert abs(spec.last_until(first + int(periods * period) + 1, seed) - first - periods * period) <= 1


documents = st.one_of(
    st.builds(
        lambda period, part: {
            "interval_s": period,
            "jitter_s": round(min(period - 1, JITTER_MAX_S) * part, 3),
        },
        st.integers(1, 100_000),
        st.floats(0, 1),
    ),
    st.builds(
        lambda text, jitter: {"cron": text, "tz": "Europe/Berlin", "jitter_s": jitter},
        st.sampled_from(["* * * * *", "0,1 9 * * *", "30 2 * * *", "*/20 * * * * *"]),
        st.integers(0, 7200),
    ),
)


@cheap
@given(documents, instants, st.text(max_size=5))
def test_a_jitter_delays_within_its_bound_and_never_reaches_the_next_fire(
    document: dict[str, object], start: int, seed: str
) -> None:
    jittered = Spec.parse(document)
    planned = Spec.parse({**document, "jitter_s": 0}).fires(start, start + YEAR, seed, 6)

    fires = jittered.fires(planned[0] - 1, start + YEAR, seed, 6)

    assert all(0 <= fire - plan <= jittered.jitter_us for plan, fire in zip(planned, fires, strict=True))
    assert all(plan - fire >= us(1) for plan, fire in zip(planned[1:], fires, strict=False))


@cheap
@given(documents, instants, st.text(max_size=5), st.integers(0, us(7200)))
def test_from_wherever_it_is_asked_the_fires_are_the_same(
    document: dict[str, object], start: int, seed: str, step: int
) -> None:
    spec = Spec.parse(document)
    fires = spec.fires(start, start + YEAR, seed, 8)
    asked = start + step

    expected = next((fire for fire in fires if fire > asked), None)
    assert expected is None or spec.next_after(asked, seed) == expected
    earlier = [fire for fire in fires if fire <= asked]
    assert not earlier or expected is None or spec.last_until(asked, seed) == earlier[-1]


def test_entities_are_spread_over_the_period() -> None:
    spec, hour = Spec.parse({"rate": 1}), us(3600)
    quarters = [spec.next_after(START, f"probe/{n}") % hour // (hour // 4) for n in range(400)]

    assert all(70 <= quarters.count(quarter) <= 130 for quarter in range(4))


def test_a_phase_shifts_all_fires() -> None:
    plain, shifted = (Spec.parse({"rate": 1, "phase_s": phase}) for phase in (0, 1200))

    assert shifted.next_after(START + us(1200), "x") == plain.next_after(START, "x") + us(1200)


def test_another_process_computes_the_same() -> None:
    """Its hashes of texts differ, because Python gives each process a seed of its own."""
    code = (
        "from fencerow.schedules.spec import Spec\n"
        "spec = Spec.parse({'rate': '7/3', 'jitter_s': 60})\n"
        f"print(spec.fires({START}, {START + YEAR}, 'probe/eu', 5))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env={"PYTHONHASHSEED": "77"}, capture_output=True, text=True, check=True
    )

    spec = Spec.parse({"rate": "7/3", "jitter_s": 60})
    assert done.stdout.strip() == str(spec.fires(START, START + YEAR, "probe/eu", 5))


def test_the_instants_of_a_release_stay_those_of_the_next() -> None:
    """A change of these numbers would move every spread schedule of every user once."""
    spec = Spec.parse({"rate": 4, "jitter_s": 30})

    assert spec.fires(START, START + us(1800), "probe/eu", 5) == [
        1_767_225_761_208_778,
        1_767_226_669_556_181,
    ]
