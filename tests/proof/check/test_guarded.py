"""Handlers that rest on our guards: the wrong are refused, the right accepted, whatever a second run leaves."""

from __future__ import annotations

import json

import pytest

from fencerow.cli.main import run
from fencerow.db.errors import exits
from fencerow_proof.check import Fault, Outside, Report, check_handler
from tests.proof.check.faults import CHARGE, place_of

HERE = "tests.proof.check.handlers.guarded"
LOOK_UP = Outside("tests.proof.check.handlers.outside:look_up", repeatable=True)

WRONG = [
    ("published_after_the_commit", Fault.INSERTED_TWICE, "events published"),
    ("published_if_first", Fault.LEFT_UNDONE, "events published"),
    ("mark_in_a_temporary_file", Fault.CHANGED_TWICE, "stock"),
    ("mark_in_shared_memory", Fault.UNDECLARED_FILE, None),
    ("result_of_the_last_run", Fault.RESULT_DIFFERS, "the job's result"),
    ("a_key_for_each_attempt", Fault.INSERTED_TWICE, "keys of once"),
    ("refused_is_success", Fault.CHANGED_TWICE, "parcels"),
]
RIGHT = [
    "published_with_the_rows",
    "snoozes_while_leased",
    "takes_over_what_it_leased",
    "asks_again",
    "result_with_a_number_of_the_database",
    "under_a_mutex",
    "temporary_file",
]


def checked(job: str, orders: int = 2) -> Report:
    return check_handler(
        f"{HERE}:{job}",
        {"order": 1},
        setup=f"{HERE}:tables",
        outside=[CHARGE, LOOK_UP],
        orders=orders,
        run_s=60.0,
    )


@pytest.mark.parametrize(("job", "fault", "table"), WRONG, ids=[job for job, _, _ in WRONG])
def test_a_wrong_handler_is_refused_and_told_why(job: str, fault: Fault, table: str | None) -> None:
    report = checked(job)

    assert not report.ok
    found = [each for each in report.found(fault) if each.table == table]
    assert found, report.text()
    assert all(each.place != "?" for each in found), report.text()
    if fault in (Fault.INSERTED_TWICE, Fault.LEFT_UNDONE, Fault.UNDECLARED_FILE):
        assert any(each.place.endswith(place_of("guarded", f"fault: {job}")) for each in found), report.text()


@pytest.mark.parametrize("job", RIGHT)
def test_a_right_handler_is_accepted(job: str) -> None:
    report = checked(job)

    assert report.ok, report.text()


def test_a_call_that_nobody_called_repeatable_counts_each_time() -> None:
    """The control of the handler that asks again."""
    report = check_handler(
        f"{HERE}:asks_again",
        {"order": 1},
        setup=f"{HERE}:tables",
        outside=[CHARGE, Outside(LOOK_UP.target)],
        orders=2,
        run_s=60.0,
    )

    assert [each.fault for each in report.findings] == [Fault.CALLED_TWICE]
    assert "declare it repeatable" in report.findings[0].what


def test_a_sample_is_told_by_the_code_and_the_summary(capsys: pytest.CaptureFixture[str]) -> None:
    more = [
        "--setup",
        f"{HERE}:tables",
        "--args",
        '{"order": 1}',
        "--outside",
        f"{LOOK_UP.target},repeatable",
    ]

    assert run(["check", f"{HERE}:asks_again", "--orders", "1", *more]) == exits.SAMPLED
    text = capsys.readouterr().out
    assert "a sample of 1 of about" in text
    assert text.strip().endswith("only a sample of the orders was played: --orders plays more")
    assert run(["check", f"{HERE}:asks_again", "--orders", "200", "--json", *more]) == exits.OK
    assert not json.loads(capsys.readouterr().out)["sampled"]
