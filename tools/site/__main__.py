"""Builds the documentation as a site: python -m tools.site [FOLDER]; without a folder into .fencerow/site.

What is wrong is printed, one thing a line, and the exit code is 1. `--check` builds into a folder that is thrown away.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

from tools.house.files import ROOT
from tools.site import checking, listed, llms
from tools.site.building import build

USUAL = ROOT / ".fencerow" / "site"
MARK = "search.js"  # what only a site of ours has: no other folder is ever emptied


def main(arguments: list[str]) -> int:
    if arguments == ["--check"]:
        with tempfile.TemporaryDirectory() as thrown_away:
            return told(Path(thrown_away), colours=False)
    folder = Path(arguments[0]).resolve() if arguments else USUAL
    if folder.exists() and any(folder.iterdir()):
        if not (folder / MARK).exists():
            sys.stderr.write(f"error: {folder} has files that are none of a site\n  give an empty folder\n")
            return 2
        shutil.rmtree(folder)
    code = told(folder, colours=True)
    sys.stdout.write(f"{folder / 'index.html'}\n")
    return code


def told(folder: Path, *, colours: bool) -> int:
    """Build, and say what is wrong."""
    build(folder, colours=colours)
    found = [*listed.faults(), *llms.faults(), *checking.faults(folder)]
    sys.stdout.writelines(f"{fault}\n" for fault in found)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
