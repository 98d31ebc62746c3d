"""What a beat schedule becomes."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from fencerow.moving.celery.names import last, said
from fencerow.moving.celery.note import Note, NoteLevel

PLACES = ("minute", "hour", "day_of_month", "month_of_year", "day_of_week")
UNITS = {"seconds": 1, "minutes": 60, "hours": 3600, "days": 86_400, "weeks": 604_800}


def beat_notes(file: str, value: ast.expr) -> Iterator[Note]:
    """One note for each entry of a dictionary of schedules."""
    if not isinstance(value, ast.Dict):
        yield Note(
            file,
            value.lineno,
            "schedule",
            NoteLevel.PERSON,
            said(value),
            "app.schedule for each entry that a run makes",
        )
        return
    for key, entry in zip(value.keys, value.values, strict=True):
        if key is None or not isinstance(entry, ast.Dict):
            yield Note(
                file, entry.lineno, "schedule", NoteLevel.PERSON, said(entry), "app.schedule for each entry"
            )
            continue
        fields = {
            each.value: item
            for each, item in zip(entry.keys, entry.values, strict=True)
            if isinstance(each, ast.Constant)
        }
        yield _entry(file, key, fields.get("schedule"), fields.get("task"))


def periodic(file: str, node: ast.Call) -> Iterator[Note]:
    """What `add_periodic_task(when, signature, name=...)` becomes."""
    when = node.args[0] if node.args else None
    what = node.args[1] if len(node.args) > 1 else None
    yield _entry(file, node, when, what)


def _entry(file: str, at: ast.expr, when: ast.expr | None, what: ast.expr | None) -> Note:
    told = said(what, 50) if what is not None else "?"
    written = _written(when) if when is not None else None
    if written is None:
        means = "app.schedule; when it fires only a run shows"
        return Note(
            file, at.lineno, "schedule", NoteLevel.PERSON, f"{told}: {said(when, 40) if when else '?'}", means
        )
    return Note(file, at.lineno, "schedule", NoteLevel.BECOMES, told, f"app.schedule(job, {written})")


def _written(when: ast.expr) -> str | None:
    if isinstance(when, ast.Constant) and isinstance(when.value, int | float):
        return f"interval_s={when.value:g}"
    if not isinstance(when, ast.Call):
        return None
    given = {each.arg: each.value for each in when.keywords}
    match last(when.func):
        case "crontab":
            given |= dict(zip(PLACES, when.args, strict=False))
            places = [_place(given.get(name)) for name in PLACES]
            return None if None in places else f"cron={' '.join(filter(None, places))!r}"
        case "timedelta" | "schedule":
            return _interval(given)
    return None


def _place(node: ast.expr | None) -> str | None:
    if node is None:
        return "*"
    return str(node.value) if isinstance(node, ast.Constant) and isinstance(node.value, str | int) else None


def _interval(given: dict[str | None, ast.expr]) -> str | None:
    total = 0.0
    for name, node in given.items():
        if name not in UNITS or not isinstance(node, ast.Constant) or not isinstance(node.value, int | float):
            return None
        total += node.value * UNITS[name]
    return f"interval_s={total:g}" if total > 0 else None
