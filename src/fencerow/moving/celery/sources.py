"""The files of a code base: found, bounded, parsed. What cannot be read is told and passed over."""

from __future__ import annotations

import ast
import os
import re
import tokenize
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from fencerow.moving.celery.note import Passed

WORDS = re.compile(
    "celery|task|delay|apply_async|on_commit", re.IGNORECASE
)  # a file without them has nothing for us
FILES_MAX = 20_000
BYTES_MAX = 2_000_000
LEFT_OUT = {"node_modules", "site-packages", "__pycache__", "venv", "env", "build", "dist"}


@dataclass(frozen=True, slots=True)
class Source:
    """A file that was parsed; its tree is empty where no word of Celery stands in it."""

    name: str
    tree: ast.Module


def read(root: Path, passed: list[Passed]) -> Iterator[Source]:
    """All of them, in the order of their names; those that cannot be read go into `passed`."""
    for path in files(root):
        name = str(path.relative_to(root)) if path != root else path.name
        try:
            yield Source(name, _parsed(path))
        except RecursionError:
            passed.append(Passed(name, "it is nested too deeply"))
        except (OSError, SyntaxError, ValueError, MemoryError) as error:
            passed.append(Passed(name, str(error)[:200] or type(error).__name__))


def files(root: Path) -> Iterator[Path]:
    """The Python files below a folder, without what was installed there; no links are followed."""
    if root.is_file():
        yield root
        return
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(each for each in folders if each not in LEFT_OUT and not each.startswith("."))
        for name in sorted(names):
            path = Path(folder) / name
            if name.endswith(".py") and not path.is_symlink():
                yield path


def _parsed(path: Path) -> ast.Module:
    if path.stat().st_size > BYTES_MAX:
        raise ValueError(f"it is larger than {BYTES_MAX} bytes")
    if not path.is_file():
        raise ValueError("it is no file")
    with tokenize.open(path) as file, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of escapes in others' strings
        text = file.read()
        return ast.parse(text if WORDS.search(text) else "")
