"""What a plan comes to: the figures of part B from a plan as it is written, and the bounds beside the keys."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from fencerow.planning.bounds import BoundKind, CapacityBound
from fencerow.planning.errors import InvalidPlan
from fencerow.planning.plan import By
from fencerow.planning.report import CapacityReport
from tests.planning.plans import PROBER, changed, report_of


def bound(report: CapacityReport, kind: BoundKind, name: str) -> CapacityBound:
    (found,) = (each for each in report.bounds if (each.kind, each.name) == (kind, name))
    return found


def most(report: CapacityReport) -> tuple[int | None, str]:
    (group,) = report.groups
    return group.entities_max, "" if group.bound is None else group.bound.kind.value


def test_the_known_example() -> None:
    report = report_of(PROBER)

    key = bound(report, BoundKind.KEY, "provider")
    assert key.load == 32 and key.left == 28 and key.keeps_up
    assert most(report) == (187, "slots")
    pool = bound(report, BoundKind.SLOTS, "all queues")
    assert pool.load == 576 and pool.room == 6000
    assert (pool.slots_needed, pool.processes_needed) == (10, 1)
    assert report.ok


def test_the_known_example_with_slots_of_their_own() -> None:
    jobs = {"deal": {"queue": "deals"}, "retrieval": {"queue": "retrievals"}}
    workers = {"processes": 5, "queues": {"deals": 10, "retrievals": 10}}

    report = report_of({**changed(PROBER, jobs=jobs), "workers": workers})

    assert most(report) == (150, "slots")
    assert bound(report, BoundKind.SLOTS, "retrievals").entities_max("provider") == 250


def test_the_example_with_five_kinds() -> None:
    more = {
        "sampled": {"key": "provider", "rate": 2, "duration_s": 180},
        "cleanup": {"key": "provider", "rate": "1/24", "duration_s": 300},
        "pull": {"key": "provider", "interval_s": 3600, "duration_s": 300},
    }

    report = report_of(changed(PROBER, jobs=more))

    assert bound(report, BoundKind.KEY, "provider").load == 43 + Fraction(5, 24)
    assert most(report) == (138, "slots")


@pytest.mark.parametrize(("rate", "keeps_up", "left"), [(59, True, 1), (60, True, 0), (61, False, 0)])
def test_a_key_above_60_minutes_can_never_catch_up(rate: int, keeps_up: bool, left: int) -> None:
    jobs = {"deal": {"key": "provider", "rate": rate, "duration_s": 60}}
    workers = {"processes": 1000, "slots": 1000}

    report = report_of({**PROBER, "jobs": jobs, "workers": workers})

    key = bound(report, BoundKind.KEY, "provider")
    assert key.keeps_up is report.ok is keeps_up
    assert key.left == left
    assert (most(report) == (0, "key")) is not keeps_up


def test_a_key_of_several_at_once_has_room_for_more() -> None:
    report = report_of(changed(PROBER, keys={"provider": {"at_once": 2}}))

    assert bound(report, BoundKind.KEY, "provider").left == 2 * 60 - 32


def test_what_belongs_to_nobody_takes_room_from_the_entities() -> None:
    report = report_of(changed(PROBER, jobs={"mail": {"arrivals": "2/min", "duration_s": 60}}))

    assert most(report) == ((6000 - 120) // 32, "slots")


def test_a_limit_bounds_who_names_it_and_one_of_a_queue_all_of_the_queue() -> None:
    limits = {"chain": {"at_once": 3}, "queue:default": {"rate": "150/h"}, "fleet": {"at_once": 12}}
    jobs = {"deal": {"limits": ["chain"]}}

    report = report_of(changed(PROBER, limits=limits, jobs=jobs))

    assert bound(report, BoundKind.LIMIT, "chain").load == 18 * 20
    assert not bound(report, BoundKind.LIMIT, "chain").keeps_up
    rate = bound(report, BoundKind.RATE, "queue:default")
    assert rate.load == 180 and rate.room == 150
    assert bound(report, BoundKind.LIMIT, "fleet").load == 576
    assert most(report) == (9, "limit")
    assert not report.ok


def test_a_limit_per_key_is_counted_for_each_entity() -> None:
    limits = {"pace": {"rate": "12/h", "per_key": True, "values": "provider"}}
    jobs = {"deal": {"limits": ["pace"]}, "retrieval": {"limits": ["pace"]}}

    report = report_of(changed(PROBER, limits=limits, jobs=jobs))

    pace = bound(report, BoundKind.RATE, "pace")
    assert pace.load == 10 and pace.room == 12 and pace.group == "provider"
    assert most(report) == (187, "slots")


def test_a_limit_per_key_of_its_own_is_shared_by_its_values() -> None:
    """20,000 users get one mail a day through two providers, each of which takes 36 mails an hour."""
    digest = {"key": "user", "rate": 1, "per": "day", "duration_s": 1, "limits": ["mailer"]}
    written: dict[str, Any] = {
        "workers": {"processes": 2, "slots": 10},
        "keys": {"user": {"entities": 20_000}},
        "jobs": {"digest": digest},
        "limits": {"mailer": {"rate": "36/h", "per_key": True, "values": 2}},
    }

    report = report_of(written)

    mailer = bound(report, BoundKind.RATE, "mailer")
    assert mailer.load == Fraction(20_000, 24) and mailer.room == 72 and mailer.values == 2
    assert not report.ok and most(report) == (36 * 2 * 24, "rate")
    with pytest.raises(InvalidPlan, match="write values = 2") as refused:
        report_of(changed(written, limits={"mailer": {"values": None}}))
    assert 'values = "user" if each user has one' in refused.value.fix


def test_failures_count_with_their_attempts() -> None:
    report = report_of(changed(PROBER, jobs={"deal": {"failure_share": 0.5, "attempts_max": 2}}))

    assert bound(report, BoundKind.KEY, "provider").load == 4 * 5 * 1.5 + 12


def test_the_p95_is_careful_and_the_mean_says_what_will_happen() -> None:
    written = {
        "workers": {"slots": 1},
        "jobs": {"mail": {"arrivals": "60/h", "mean_s": 30, "p95_s": 70}},
    }

    assert [report_of(written, by).ok for by in (By.MEAN, By.P95)] == [True, False]


@pytest.mark.parametrize(
    ("rules", "jobs"),
    [
        ({}, 1),
        ({"misfire": "one"}, 1),
        ({"misfire": "one", "overlap": "allow"}, 1),
        ({"misfire": "all"}, 20),
        ({"misfire": "skip", "late_s": 60}, Fraction(60, 900)),
        ({"misfire": "skip", "late_s": 3600}, 1),
        ({"misfire": "skip", "late_s": 3600, "overlap": "allow"}, 4),
    ],
)
def test_the_rules_of_a_schedule_say_what_an_outage_leaves(rules: dict[str, object], jobs: int) -> None:
    written = changed(PROBER, jobs={"deal": rules}, outage={"lasts_s": 5 * 3600})

    outage = report_of(written).outage

    assert outage is not None
    assert outage.backlog["deal"] == jobs


def test_a_backlog_is_drained_in_what_is_left() -> None:
    jobs = {"deal": {"misfire": "all"}, "retrieval": {"misfire": "all"}}
    written = changed(PROBER, jobs=jobs, outage={"lasts_s": 5 * 3600, "drained_within_s": 20_000})

    report = report_of(written)

    assert report.outage is not None
    assert report.outage.jobs == 18 * 50
    slowest = report.outage.slowest
    assert (slowest.bound.kind, slowest.drain_s) == (BoundKind.KEY, Fraction(5 * 32, 28) * 3600)
    assert not report.ok, "it takes 20,571 s"


def test_more_slots_drain_it_in_time() -> None:
    written = {
        "workers": {"slots": 2},
        "jobs": {"mail": {"arrivals": "1/min", "duration_s": 60}},
        "outage": {"lasts_s": 7200, "drained_within_s": 1800},
    }

    report = report_of(written)

    assert report.outage is not None
    ((pool, slots),) = report.outage.slots_needed
    assert report.outage.slowest.drain_s == 7200
    assert (pool.name, slots) == ("all queues", 5)
    assert not report.ok
    assert report_of({**written, "workers": {"slots": slots}}).ok


def test_what_is_full_never_drains() -> None:
    written = {
        "workers": {"slots": 1},
        "jobs": {"mail": {"arrivals": "1/min", "duration_s": 60}},
        "outage": {"lasts_s": 3600},
    }

    report = report_of(written)

    assert report.ok, "it keeps up"
    assert report.outage is not None
    assert report.outage.slowest.drain_s is None


@pytest.mark.parametrize(
    ("when", "rate"),
    [
        ({"cron": "*/15 * * * *"}, 4),
        ({"cron": "0 3 * * *"}, Fraction(1, 24)),
        ({"cron": "0 9 * * mon"}, Fraction(522, 3653 * 24)),
        ({"cron": "0 0 1 * *"}, Fraction(120, 3653 * 24)),
        ({"rate": 7, "per": "day"}, Fraction(7, 24)),
        ({"interval_s": 0.5 * 3600}, 2),
        ({"cron": "*/10 * * * * *"}, 360),
    ],
)
def test_how_often_a_schedule_fires(when: dict[str, object], rate: Fraction) -> None:
    written = {"workers": {"slots": 1}, "jobs": {"poll": {**when, "duration_s": 1}}}

    found = report_of(written).bounds[0].jobs[0].rate_per_hour

    assert abs(found / rate - 1) < Fraction(1, 1000)
