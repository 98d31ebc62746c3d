"""The source files of an application, and which of them changed.

By looking again and again at when each was last written. The system's own notices would come sooner, and would not come
at all from a folder that is mounted into a container or over a network, which is where many people develop.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from fencerow.command.app_loading import look_here

SKIPPED = frozenset({"__pycache__", "node_modules", "site-packages", "dist-packages"})

Seen = dict[str, tuple[int, int]]


class Sources:
    """The Python files below some folders, as they were when somebody looked last."""

    def __init__(self, folders: Sequence[Path]) -> None:
        self.folders = tuple(folders)
        self._seen = self._look()

    @property
    def count(self) -> int:
        """How many files there are."""
        return len(self._seen)

    def changed(self) -> set[str]:
        """The files that were written, made or removed since the last look."""
        before, self._seen = self._seen, self._look()
        names = before.keys() | self._seen.keys()
        return {name for name in names if before.get(name) != self._seen.get(name)}

    def _look(self) -> Seen:
        return {path: stamp for folder in self.folders for path, stamp in _files(folder)}


def folders_of(app_name: str | None) -> list[Path]:
    """The working directory, and that of the application's package where it lies elsewhere and is no installed one."""
    here = Path.cwd()
    look_here()
    try:
        spec = importlib.util.find_spec((app_name or "").partition(":")[0].partition(".")[0] or "_")
    except (ImportError, ValueError):
        spec = None
    elsewhere = [Path(each) for each in (spec.submodule_search_locations if spec else None) or ()]
    return [
        here,
        *(each for each in elsewhere if not _is_below(each, here) and SKIPPED.isdisjoint(each.parts)),
    ]


def _is_below(path: Path, folder: Path) -> bool:
    return path.resolve().is_relative_to(folder.resolve())


def _files(folder: Path) -> Iterator[tuple[str, tuple[int, int]]]:
    """Each Python file with when it was written and its size. What cannot be read is passed over: it may be gone."""
    waiting = [str(folder)]
    while waiting:
        try:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        if _is_source(entry):
                            waiting.append(entry.path)
                    elif entry.name.endswith(".py"):
                        stat = entry.stat()
                        yield entry.path, (stat.st_mtime_ns, stat.st_size)
        except OSError:
            continue


def _is_source(folder: os.DirEntry[str]) -> bool:
    """Whether there may be source files in it; in a virtual environment there are other people's."""
    if folder.name.startswith(".") or folder.name in SKIPPED:
        return False
    return not Path(folder.path, "pyvenv.cfg").exists()
