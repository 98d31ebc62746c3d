"""Is this handler idempotent and safe side by side, and why not: `fencerow check` for tests of your own.

from fencerow_proof.check import check_handler

def test_charge():
    report = check_handler(charge, {"order": 1}, setup=make_tables)
    assert report.ok, report.text()
"""

from fencerow_proof.check.check import Outside, check_handler
from fencerow_proof.check.outside import DependencyDown, outside_call
from fencerow_proof.check.report import Answer, Fault, Finding, Question, Report

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
