"""What a plan comes to, for people: tables and lines; and for programs: one document."""

from __future__ import annotations

from fractions import Fraction

from fencerow.command import output
from fencerow.command.layout import Column
from fencerow.command.times import span
from fencerow.db.text import amount
from fencerow.planning.bounds import BoundKind, CapacityBound
from fencerow.planning.report import CapacityReport, OutageReport

COLUMNS = (
    Column("bound"),
    Column("of", least=13),
    Column("unit"),
    Column("load"),
    Column("room"),
    Column("used"),
    Column("left"),
    Column("slots", rank=1),
    Column("processes", rank=1),
)
LEAST = 0.01  # that is shown
UNITS = {BoundKind.RATE: "starts"}


def show(report: CapacityReport) -> None:
    """Print it."""
    units = "min: minutes of work; slots, processes: what the load needs"
    output.say_text(f"In an hour, by the {report.by.value} of durations; {units}")
    output.say()
    output.table(COLUMNS, [_row(each) for each in report.bounds])
    output.say()
    for line in _verdicts(report):
        output.say_text(line)
    if report.outage is not None:
        output.say()
        for line in _outage(report.outage):
            output.say_text(line)


def document(report: CapacityReport) -> dict[str, object]:
    """For programs."""
    return {
        "ok": report.ok,
        "by": report.by.value,
        "bounds": [_bound(each) for each in report.bounds],
        "entities": [
            {
                "key": each.group,
                "entities": each.entities,
                "entities_max": each.entities_max,
                "bound": None if each.bound is None else _named(each.bound),
            }
            for each in report.groups
        ],
        "outage": None if report.outage is None else _of_outage(report.outage),
    }


def number(value: Fraction | float) -> str:
    """Three digits, or the whole of a number up to a million. What is less than a hundredth is not told apart."""
    found = float(value)
    if 0 < found < LEAST:
        return f"<{LEAST:g}"
    return f"{found:,.0f}" if 1000 <= abs(found) < 1_000_000 else f"{found:.3g}"


def named(bound: CapacityBound) -> str:
    """A bound in words."""
    match bound.kind:
        case BoundKind.KEY:
            return f"each key of {bound.name}"
        case BoundKind.SLOTS:
            return f"the slots of {bound.name}"
        case BoundKind.LIMIT:
            return f"the limit {bound.name}"
        case BoundKind.RATE:
            return f"the rate of {bound.name}"


def _row(bound: CapacityBound) -> tuple[object, ...]:
    return (
        bound.kind.value,
        _of(bound),
        UNITS.get(bound.kind, "min"),
        number(bound.load),
        number(bound.room),
        f"{number(bound.used * 100)} %",
        number(bound.left) if bound.keeps_up else "never",
        bound.slots_needed,
        bound.processes_needed,
    )


def _of(bound: CapacityBound) -> str:
    """What it is of: each entity of a key, or so many keys of a limit together."""
    if bound.values is not None:
        return f"{bound.values} x {bound.name}"
    return f"each {bound.name}" if bound.group else bound.name


def _verdicts(report: CapacityReport) -> list[str]:
    lines = [_verdict(each) for each in report.bounds if each.load >= each.room]
    for each in report.groups:
        if each.entities_max is None or each.bound is None:
            lines.append(f"{each.group}: {each.entities} now, and nothing bounds how many there may be")
        elif each.entities_max:
            most = f"{each.entities_max} at most, bounded by {named(each.bound)}"
            lines.append(f"{each.group}: {each.entities} now, {most}")
    return lines or ["everything keeps up"]


def _verdict(bound: CapacityBound) -> str:
    if bound.keeps_up:
        return f"{named(bound)} is full: it keeps up, but nothing is left to catch up with a backlog"
    if bound.kind is BoundKind.KEY:
        return f"{named(bound)} can never catch up, with any number of workers: its backlog grows"
    return f"{named(bound)} can never catch up: the backlog grows"


def _outage(found: OutageReport) -> list[str]:
    lasts = f"an outage of {span(float(found.outage.lasts_s))}"
    lines = [f"{lasts} leaves {number(found.jobs)} jobs behind"]
    slowest = found.slowest
    if slowest.drain_s is None:
        lines.append(f"they are never drained: {named(slowest.bound)} has nothing left")
    else:
        lines.append(f"they are drained after {_span(slowest.drain_s)}; slowest is {named(slowest.bound)}")
    within_s = found.outage.drained_within_s
    if within_s is not None:
        lines += [
            f"within {_span(within_s)} it takes {amount(slots, 'slot')} of {bound.name}"
            for bound, slots in found.slots_needed
        ]
    return lines


def _span(seconds: Fraction) -> str:
    return span(float(seconds))


def _named(bound: CapacityBound) -> dict[str, object]:
    return {"kind": bound.kind.value, "name": bound.name, "key": bound.group}


def _bound(bound: CapacityBound) -> dict[str, object]:
    return {
        **_named(bound),
        "values": bound.values,
        "unit": "starts" if bound.kind is BoundKind.RATE else "minutes",
        "load": float(bound.load),
        "room": float(bound.room),
        "used": float(bound.used),
        "left": float(bound.left),
        "keeps_up": bound.keeps_up,
        "slots_needed": bound.slots_needed,
        "processes_needed": bound.processes_needed,
    }


def _of_outage(found: OutageReport) -> dict[str, object]:
    return {
        "lasts_s": float(found.outage.lasts_s),
        "backlog": {name: float(number) for name, number in found.backlog.items()},
        "jobs": float(found.jobs),
        "drain_s": None if found.slowest.drain_s is None else float(found.slowest.drain_s),
        "bound": _named(found.slowest.bound),
        "drained_within_s": _number_or_none(found.outage.drained_within_s),
        "slots_needed": {bound.name: slots for bound, slots in found.slots_needed},
    }


def _number_or_none(value: Fraction | None) -> float | None:
    return None if value is None else float(value)
