"""Is this handler idempotent and safe side by side, and why not: `fencerow check` for tests of your own.

from fencerow.testing.check import check_handler

def test_charge():
    report = check_handler(charge, {"order": 1}, setup=make_tables)
    assert report.ok, report.text()
"""

from fencerow.testing.check.check import Outside, check_handler
from fencerow.testing.check.outside import DependencyDown, outside_call
from fencerow.testing.check.report import Answer, Fault, Finding, Question, Report

__all__ = [
    "Answer",
    "DependencyDown",
    "Fault",
    "Finding",
    "Outside",
    "Question",
    "Report",
    "check_handler",
    "outside_call",
]
