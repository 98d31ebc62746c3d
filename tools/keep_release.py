"""Keeps the code of a release for the tests of rolling deploys: python3 tools/keep_release.py COMMIT NAME

Writes tests/whole/deploys/NAME.zip with what a worker and a client need, so that the tests need no history.

Until a version is tagged there is one, foundation.zip, and whoever changes a migration that it has makes it
anew with the change: git add …; python3 tools/keep_release.py $(git stash create) foundation
"""

from __future__ import annotations

import subprocess
import sys
import tarfile
import zipfile
from io import BytesIO
from pathlib import Path

ROOT = Path(__file__).parents[1]
LEFT_OUT = ("bench", "cli", "demo")  # no worker and no client needs these
KEPT = (".py", ".sql", ".json")
DATE = (1980, 1, 1, 0, 0, 0)  # the same bytes whenever it is made


def main(commit: str, name: str) -> Path:
    """Write the archive and return its path."""
    done = subprocess.run(
        ["git", "archive", commit, "src/fencerow"],  # noqa: S607
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    target = ROOT / "tests" / "whole" / "deploys" / f"{name}.zip"
    with tarfile.open(fileobj=BytesIO(done.stdout)) as tar, zipfile.ZipFile(target, "w") as kept:
        for member in sorted(tar.getmembers(), key=lambda each: each.name):
            path = Path(member.name).relative_to("src") if member.isfile() else None
            content = tar.extractfile(member) if path is not None else None
            if path is None or content is None or path.parts[1] in LEFT_OUT or path.suffix not in KEPT:
                continue
            kept.writestr(
                zipfile.ZipInfo(str(path), DATE), content.read(), zipfile.ZIP_DEFLATED, compresslevel=9
            )
    return target


if __name__ == "__main__":
    made = main(*sys.argv[1:3])
    sys.stdout.write(f"{made.relative_to(ROOT)}: {made.stat().st_size} bytes\n")
