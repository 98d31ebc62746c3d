"""Verifying a model with Spin: it writes a C program that visits every state, which is compiled and run."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

MODELS = Path(__file__).parent
STEP_S = 120  # for a machine that is busy; most need less than a second
MEMORY_MB = 1024
DEPTH = 100_000  # no model comes near; one that did would say so


@dataclass(frozen=True)
class Verdict:
    """What a search came to: whether it visited every state, what it found, and how many states there are."""

    complete: bool
    errors: int
    states: int
    text: str


def is_spin_there() -> bool:
    """Whether Spin and a C compiler are installed."""
    return all(shutil.which(name) for name in ("spin", "gcc"))


def verify(model: str, flags: Sequence[str], folder: Path, *, cycles: bool = False) -> Verdict:
    """Visit the states of a model under these defines, until an error is found; `cycles`: look for endless runs."""
    defines = [f"-D{flag}" for flag in flags]
    _run(folder, "spin", "-a", *defines, str(MODELS / f"{model}.pml"))
    kind = ["-DNP"] if cycles else ["-DSAFETY"]
    # -O0: to compile takes longer than most searches.
    _run(folder, "gcc", "-w", "-O0", f"-DMEMLIM={MEMORY_MB}", *kind, "-o", "pan", "pan.c")
    # -b: a run that is too deep is an error. -E: that everybody waits is none, a model says itself what its end is.
    return judged(_run(folder, "./pan", f"-m{DEPTH}", "-b", "-E", *(["-l"] if cycles else [])))


def judged(text: str) -> Verdict:
    """Read what the search printed."""
    errors, states = re.search(r"errors: (\d+)", text), re.search(r"(\d+) states, stored", text)
    assert errors and states, text
    cut_short = ("Search not completed", "max search depth too small", "out of memory", "memory limit")
    return Verdict(
        not any(words in text for words in cut_short), int(errors[1]), int(states[1].replace(",", "")), text
    )


def _run(folder: Path, *command: str) -> str:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=STEP_S)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout}{done.stderr}"
    return done.stdout
