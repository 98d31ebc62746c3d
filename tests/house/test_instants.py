"""Whoever reads a public record gets datetimes; whole microseconds are what it is kept in."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from fencerow.operators.looking import LogLine
from tools.public.listed import PAGES, entries, records
from tools.public.names import Entry

# What a submit or a claim hands down, and the arithmetic of limits: nobody is given these to read.
HANDED_DOWN = {"SubmitOptions", "Template", "QueueLane"}
OF_LIMITS = {"BreakerState", "Breaking", "FailedAttempt", "LimitState", "Pace", "StartRoom"}


def with_instants() -> Iterator[tuple[Entry, str]]:
    for page in PAGES:
        for entry in (*entries(page), *records(page)):
            for name in getattr(entry.found, "__struct_fields__", ()):
                if name.endswith("_us") and entry.name not in HANDED_DOWN | OF_LIMITS:
                    yield entry, name


def test_each_instant_of_a_public_record_is_there_as_a_datetime() -> None:
    found = list(with_instants())

    plain = [f"{entry.name}.{name}" for entry, name in found if not hasattr(entry.found, name[:-3])]

    assert len(found) > 40
    assert plain == []


def test_the_datetime_names_its_zone() -> None:
    line = LogLine(attempt=1, at_us=1_790_000_000_000_001, level="info", message="there")

    assert line.at == datetime(2026, 9, 21, 14, 13, 20, 1, tzinfo=UTC)
