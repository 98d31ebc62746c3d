"""The planted faults: which handler has one, what it is, and at which line."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from fencerow_proof.check import Fault, Outside, Question, Report, check_handler

HANDLERS = Path(__file__).parent / "handlers"
ORDERS = 6  # enough for each that shows itself only side by side; the command plays more
FEW = 2  # for what is shown by a kill or by an action that fails, which come before the orders
CHARGE = Outside("tests.proof.check.handlers.outside:charge", key="key")


@dataclass(frozen=True)
class Planted:
    """A handler with a fault, its mended twin, and what a check must say of the first."""

    bad: str
    good: str | None
    fault: Fault
    answer: Question = Question.RERUN

    @property
    def orders(self) -> int:
        """How many orders it takes to find it, and to see that the twin has it no more."""
        return ORDERS if self.fault in (Fault.RACE, Fault.REPLACE_RACES) else FEW


PLANTED = (
    Planted("insert_without_key", "insert_with_key", Fault.INSERTED_TWICE),
    Planted("counter", "counter_mended", Fault.CHANGED_TWICE),
    Planted("call_before_record", "call_with_key", Fault.CALLED_TWICE),
    Planted("record_before_call", None, Fault.CALL_LOST),
    Planted("status_after_effect", "status_with_effect", Fault.INSERTED_TWICE),
    Planted("swallowed_error", None, Fault.SWALLOWED, Question.LOUD),
    Planted("read_then_write", "read_for_update", Fault.RACE),
    Planted("delete_then_insert", "replace_under_lock", Fault.REPLACE_RACES, Question.REPLACE),
    Planted("replace_in_two", None, Fault.REPLACE_TORN, Question.REPLACE),
    Planted("file_appended", "row_written", Fault.UNDECLARED_FILE),
    Planted("schema_without_lock", "schema_under_lock", Fault.SCHEMA_UNLOCKED, Question.SCHEMA),
    Planted("submit_without_key", "submit_with_key", Fault.INSERTED_TWICE),
)


def checked(module: str, job: str, url: str | None, orders: int = FEW) -> Report:
    """Check one of the handlers on PostgreSQL beside the empty database `url`, or on SQLite."""
    name = f"tests.proof.check.handlers.{module}"
    engine = "sqlite" if url is None else None
    return check_handler(
        f"{name}:{job}",
        {"order": 1},
        engine=engine,
        url=url,
        setup=f"{name}:tables",
        outside=[CHARGE],
        orders=orders,
        run_s=60.0,
    )


def place_of(module: str, mark: str) -> str:
    """The `file:line` that is marked so in a handler's source, as the end of a place."""
    file = HANDLERS / f"{module}.py"
    lines = file.read_text("utf-8").splitlines()
    found = [number for number, line in enumerate(lines, 1) if line.endswith(f"# {mark}")]
    assert len(found) == 1, f"{mark} is marked {len(found)} times"
    return f"{module}.py:{found[0]}"


def assert_found(report: Report, module: str, planted: Planted) -> None:
    """The planted fault was found where it is, and it makes its answer a no."""
    place = place_of(module, f"fault: {planted.bad}")
    found = [finding.place for finding in report.found(planted.fault)]
    assert any(each.endswith(place) for each in found), f"{place} is not among {found}\n{report.text()}"
    assert not report.ok
    assert not report.answer(planted.answer).yes
