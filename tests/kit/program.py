"""A program that a page shows, played as a script: in a process of its own, without the start of an interpreter.

It is a fork of one that has imported what workers need (tests/kit/forking.py). Whatever is settled while an interpreter
starts is not the same as for a script; where that is the subject, start `python` itself.
"""

from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path
from types import ModuleType

from tests.kit.databases import scratch_folder
from tests.kit.forking import context
from tests.kit.pace import PATIENCE_S


def printed(program: str, folder: Path) -> str:
    """What it printed, played in `folder` without settings of ours; warnings are errors. It must end well."""
    with scratch_folder() as kept:
        out, err = kept / "out", kept / "err"
        process = context.Process(target=_be, args=(program, folder, out, err), daemon=True)
        process.start()
        process.join(PATIENCE_S)
        process.kill()
        process.join()
        assert process.exitcode == 0, err.read_text("utf-8")
        return out.read_text("utf-8")


def _be(program: str, folder: Path, out: Path, err: Path) -> None:
    """In the fork."""
    for number, path in ((1, out), (2, err)):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT), number)
    sys.stdout = os.fdopen(1, "w", encoding="utf-8", closefd=False)
    sys.stderr = os.fdopen(2, "w", encoding="utf-8", closefd=False)
    for name in list(os.environ):
        if name.startswith("FENCEROW_"):
            del os.environ[name]
    os.chdir(folder)
    warnings.simplefilter("error")
    sys.modules["__main__"] = script = ModuleType("__main__")
    exec(compile(program, "page", "exec"), script.__dict__)  # noqa: S102 (it is a page of ours)
