"""What a job's maintenance windows say when it is picked up."""

from __future__ import annotations

import json

import pytest

from fencerow.calendar import zones
from fencerow.core.model.outcome import Released
from fencerow.errors import UnknownZone
from fencerow.schedules.holding import NO_ZONE_S, WINDOWS_HEADER, hold, windows_header
from fencerow.schedules.windows import MaintenanceWindows
from tests.schedules.instants import us, utc

NIGHT = windows_header(MaintenanceWindows.parse(["22:00-02:00"]))
EVENING, MORNING = utc(2026, 11, 23, 23), utc(2026, 11, 24, 2)


def test_a_job_goes_back_until_its_window_ends() -> None:
    assert hold(NIGHT, EVENING) == Released("maintenance window until 2026-11-24T02:00:00Z", 3 * 3600.0)
    assert hold(NIGHT, MORNING - 1) == Released("maintenance window until 2026-11-24T02:00:00Z", 1e-6)
    assert hold(NIGHT, MORNING) is None
    assert hold({"traceparent": "1"}, EVENING) is None
    assert windows_header(MaintenanceWindows()) == {}


@pytest.mark.parametrize("text", ["no json", "{}", "[5]", '["at night"]', '["00:00-24:00"]'])
def test_a_header_that_nobody_can_read_keeps_no_job(text: str) -> None:
    assert hold({WINDOWS_HEADER: text}, EVENING) is None


def test_a_worker_that_does_not_know_the_zone_leaves_the_job_to_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    headers = {WINDOWS_HEADER: json.dumps(["22:00-02:00 Europe/Vienna"])}
    with monkeypatch.context() as patch:
        patch.setattr("fencerow.calendar.zones.zone_names", frozenset[str])
        here = hold(headers, EVENING)

    assert here == Released("FR-821 no time zone 'Europe/Vienna'", NO_ZONE_S)


def test_zones_that_are_missing_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fencerow.calendar.zones.zone_names", frozenset[str])

    assert zones.database_missing()
    assert zones.tzdata_version.__wrapped__() == zones.NONE
    assert zones.zone("UTC") is not None
    with pytest.raises(UnknownZone, match="no time zone database"):
        zones.zone("Europe/Berlin")


def test_the_version_of_the_zones_is_that_of_their_source(monkeypatch: pytest.MonkeyPatch) -> None:
    assert zones.tzdata_version()[:2] == "20"

    monkeypatch.setattr(zones, "_label_of_system", lambda place: None)
    monkeypatch.setattr(zones, "_label_of_package", lambda: None)
    unlabelled = zones.tzdata_version.__wrapped__()
    assert unlabelled.startswith("unlabelled-") and unlabelled == zones.tzdata_version.__wrapped__()


def test_without_zones_of_the_system_the_package_says_its_version(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zones, "_system", lambda: None)

    assert zones.tzdata_version.__wrapped__()[:2] == "20"


def test_hours_from_midnight_on_hold_to_the_microsecond() -> None:
    early = windows_header(MaintenanceWindows.parse(["00:00-00:01"]))

    assert hold(early, utc(2026, 11, 24) - 1) is None
    assert hold(early, utc(2026, 11, 24)) == Released("maintenance window until 2026-11-24T00:01:00Z", 60.0)
    assert hold(early, utc(2026, 11, 24) + us(60)) is None
