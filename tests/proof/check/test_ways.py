"""Ways of checking beside the usual: two jobs with the same arguments, and a server of the check's own."""

from __future__ import annotations

from fencerow_proof.check import Fault, Report, check_handler
from tests.proof.check.faults import CHARGE, FEW, ORDERS, place_of


def checked(module: str, job: str, *, engine: str, two_jobs: bool = False) -> Report:
    name = f"tests.proof.check.handlers.{module}"
    return check_handler(
        f"{name}:{job}",
        {"order": 1},
        engine=engine,
        setup=f"{name}:tables",
        outside=[CHARGE],
        orders=ORDERS if two_jobs else FEW,
        run_s=60.0,
        two_jobs=two_jobs,
    )


def test_two_jobs_that_meet_must_end_as_one_after_the_other() -> None:
    alone = checked("on_sqlite3", "next_number", engine="sqlite")
    assert alone.ok, alone.text()

    report = checked("on_sqlite3", "next_number", engine="sqlite", two_jobs=True)
    place = place_of("on_sqlite3", "fault: next_number")
    assert any(finding.place.endswith(place) for finding in report.found(Fault.RACE)), report.text()
    assert not report.ok


def test_two_jobs_that_take_turns_pass_whoever_is_first() -> None:
    report = checked("on_sqlite3", "next_number_at_once", engine="sqlite", two_jobs=True)
    assert report.ok, report.text()


def test_without_a_url_a_check_starts_a_server_of_its_own() -> None:
    report = checked("on_psycopg", "counter", engine="postgres")
    place = place_of("on_psycopg", "fault: counter")
    assert [finding.place.endswith(place) for finding in report.found(Fault.CHANGED_TWICE)], report.text()
    assert "on postgres" in report.text()
