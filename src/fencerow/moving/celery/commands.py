"""`fencerow audit-celery`: what a code base that uses Celery becomes."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import click

from fencerow.command import output
from fencerow.command.layout import Column
from fencerow.command.options import asked, json_option
from fencerow.db.text import amount
from fencerow.moving.celery.audit import audit
from fencerow.moving.celery.note import Audit, Note, NoteLevel

COLUMNS = (
    Column("where", least=16, folds=True),
    Column("what", least=16, folds=True),
    Column("means", least=24, folds=True),
)
HEADS = {
    NoteLevel.DANGER: "Dangerous as it runs today",
    NoteLevel.PERSON: "What needs a person",
    NoteLevel.BECOMES: "What becomes what",
}


@click.command("audit-celery")
@click.argument("path", type=click.Path(path_type=Path))
@click.option("--all", "every", is_flag=True, help="Show each line, also where many mean the same.")
@json_option
@click.pass_context
def audit_celery(context: click.Context, path: Path, every: bool) -> None:
    """Read the Python files below PATH, and say what their use of Celery becomes, line by line.

    Nothing is imported or run. What cannot be read is told and passed over. Without --all, lines that mean the same
    stand together.
    """
    found = audit(path)
    if asked(context).json:
        output.say_json(found)
        return
    for level, head in HEADS.items():
        notes = [each for each in found.notes if each.level is level]
        if notes:
            output.say(f"{head}: {len(notes)}")
            output.table(COLUMNS, _rows(notes) if every else _grouped(notes))
            output.say()
    _say_rest(found)


def _rows(notes: list[Note]) -> list[tuple[object, ...]]:
    return [(f"{each.file}:{each.line}", each.found, each.means) for each in notes]


def _grouped(notes: list[Note]) -> list[tuple[object, ...]]:
    """Those that mean the same, the most frequent first: the first of them, and how many more there are."""
    counts = Counter(each.means for each in notes)
    firsts: dict[str, Note] = {}
    for each in notes:
        firsts.setdefault(each.means, each)
    return [
        (f"{one.file}:{one.line}" + (f" and {count - 1} more" if count > 1 else ""), one.found, means)
        for means, count in counts.most_common()
        for one in (firsts[means],)
    ]


def _say_rest(found: Audit) -> None:
    for each in found.passed:
        output.warn(f"passed over: {each.file}: {each.why}")
    if found.stopped:
        output.warn(f"stopped {found.stopped}")
    output.say(f"{amount(found.tasks, 'task')} in {amount(found.files, 'file')}")
