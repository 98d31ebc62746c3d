"""The whole audit: two looks over a code base, with bounds."""

from __future__ import annotations

from pathlib import Path

from fencerow.core.errors import InvalidInput
from fencerow.moving.celery.finding import Finder
from fencerow.moving.celery.names import Known
from fencerow.moving.celery.note import Audit, Note, Passed
from fencerow.moving.celery.sources import FILES_MAX, Source, read

NOTES_MAX = 50_000


def audit(root: Path, *, files_max: int = FILES_MAX, notes_max: int = NOTES_MAX) -> Audit:
    """What uses Celery below a folder, or in a file. It only reads.

    Raises:
        InvalidInput: there is nothing at this path.
    """
    if not root.exists():
        raise InvalidInput(
            f"there is no {root}", "a folder with Python files is expected", "name the folder of your code"
        )
    passed: list[Passed] = []
    known = Known()
    for look in (known.look, known.look_for_tasks):
        for number, source in enumerate(read(root, [])):
            if number >= files_max:
                break
            look(source.tree)
    notes: list[Note] = []
    files = tasks = 0
    stopped = None
    for source in read(root, passed):
        if files >= files_max or len(notes) >= notes_max:
            stopped = f"after {files} files and {len(notes)} notes: name a smaller folder"
            break
        files += 1
        finder = Finder(source.name, known)
        notes += _notes(finder, source, passed)
        tasks += finder.tasks
    return Audit(str(root), files, tasks, tuple(notes), tuple(passed), stopped)


def _notes(finder: Finder, source: Source, passed: list[Passed]) -> list[Note]:
    try:
        return finder.look(source.tree)
    except RecursionError:
        passed.append(Passed(source.name, "it is nested too deeply"))
        return []
