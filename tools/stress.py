"""Plays tests on a machine that stands still now and then: `python3 dev.py stress FILE ...`.

All processes of the tests are frozen for up to FROZEN_S, again and again, their servers too. Nothing else is slowed
down, and time goes on. A test whose verdict hangs on how fast a machine is turns red in minutes that way, where it is
red once a week otherwise. It needs root, and a control group that can be frozen (version 1 or 2).
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
GROUPS = Path("/sys/fs/cgroup")
RUNNING_S = (0.2, 1.0)
FROZEN_S = (0.5, 2.5)
# Three quarters of the time nothing runs, so whoever gives up after some time must be given four times as much.
TIMEOUT_S = "1200"
ENTERED = 'echo $$ >"$0/cgroup.procs" && exec "$@"'  # before it starts anything


@dataclass(frozen=True)
class Group:
    """A control group: what is started in it can be frozen together."""

    folder: Path
    switch: Path
    words: tuple[str, str]  # that freeze it, and let it go on

    def freeze(self, frozen: bool) -> None:
        self.switch.write_text(self.words[0] if frozen else self.words[1])

    @property
    def is_empty(self) -> bool:
        return not (self.folder / "cgroup.procs").read_text().strip()


def main(arguments: list[str]) -> int:
    if not arguments:
        print("usage: python3 dev.py stress FILE ...  (options of pytest, too)", file=sys.stderr)
        return 2
    try:
        with group() as made:
            return frozen_now_and_then(made, arguments)
    except OSError as error:
        print(
            f"error: no control group can be frozen here\n  {error}\n"
            f"  run it as root on Linux, where {GROUPS} can be written to",
            file=sys.stderr,
        )
        return 2


@contextmanager
def group() -> Iterator[Group]:
    first_version = (GROUPS / "freezer").is_dir()
    folder = (GROUPS / "freezer" if first_version else GROUPS) / f"fencerow-stress-{os.getpid()}"
    folder.mkdir()
    made = (
        Group(folder, folder / "freezer.state", ("FROZEN", "THAWED"))
        if first_version
        else Group(folder, folder / "cgroup.freeze", ("1", "0"))
    )
    try:
        yield made
    finally:
        made.freeze(False)
        until = time.monotonic() + 10
        while not made.is_empty and time.monotonic() < until:
            time.sleep(0.05)
        folder.rmdir()


def frozen_now_and_then(made: Group, arguments: list[str]) -> int:
    """Play the tests and freeze them until they are over; returns pytest's exit code."""
    pytest = [str(ROOT / ".venv" / "bin" / "python"), "-m", "pytest", "-p", "no:cacheprovider"]
    run = subprocess.Popen(
        ["bash", "-c", ENTERED, str(made.folder), *pytest, "--timeout", TIMEOUT_S, *arguments], cwd=ROOT
    )
    chance, freezes, frozen_s = random.Random(), 0, 0.0
    while run.poll() is None:
        time.sleep(chance.uniform(*RUNNING_S))
        pause_s = chance.uniform(*FROZEN_S)
        made.freeze(True)
        time.sleep(pause_s)
        made.freeze(False)
        freezes, frozen_s = freezes + 1, frozen_s + pause_s
    print(f"frozen {freezes} times, {frozen_s:.0f} s in all")
    return run.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
