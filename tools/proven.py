"""Whether a commit is proven: `python3 dev.py gate` and `dev.py prove`. Needs Python 3.11, nothing else.

What was proven, what was said meanwhile and what it cost lies in .fencerow/proven, by the commit.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PROVEN = ROOT / ".fencerow" / "proven"
PYTHON = ROOT / ".venv" / "bin" / "python"
# What would reach into the clone from the shell of whoever asks.
OURS = ("FENCEROW_", "GATE_", "PYTEST", "PYTHON", "TESTS_", "VIRTUAL_ENV")
BUSY = 1.5  # runnable processes beside ours
LINES_SHOWN = 25
ANCESTORS_MAX = 500
WITHOUT_SQLITE = ("-k", "not sqlite and not lite_")
POOLED = (
    *("tests/core", "tests/whole/connections", "tests/whole/deaths", "tests/guards", "tests/retention"),
    *("tests/events/test_without_workers.py", "tests/batches", "tests/whole/outages/test_killed_server.py"),
    *("tests/doctor/test_doctor.py", "tests/proof/test_pgbouncer.py", "tests/models", "tests/deploy"),
)
IN_UVLOOP = ("tests/kit/test_loops.py", "tests/db", "tests/whole")  # sockets, and what stands on them


def main(words: list[str]) -> int:
    match words:
        case ["gate"]:
            return gate(git("rev-parse", "HEAD"))
        case ["gate", "--look"]:
            return look(git("rev-parse", "HEAD"))
        case ["prove"]:
            return prove()
        case _:
            print("usage: python3 dev.py gate [--look] | prove", file=sys.stderr)
            return 2


def gate(head: str) -> int:
    """Play .ci/run on HEAD in a fresh clone, without our environment, and keep that it passed."""
    if left := git("status", "--porcelain"):
        print(f"not committed, so not played:\n{left}")
    if (load := os.getloadavg()[0]) > BUSY:
        print(f"this machine is busy (load {load:.1f}): it takes longer, and tests may be unlucky")
    PROVEN.mkdir(parents=True, exist_ok=True)
    log, began = PROVEN / f"{head}.log", time.monotonic()
    with tempfile.TemporaryDirectory(prefix="fencerow-gate-") as folder:
        clone = cloned(head, Path(folder))
        print(f"playing .ci/run on {head[:12]}; what it says goes to {log.relative_to(ROOT)}", flush=True)
        with log.open("wb") as out:
            code = subprocess.run(
                ["bash", ".ci/run"],
                cwd=clone,
                env=environment(),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
            ).returncode
        kept = shutil.copytree(clone / ".fencerow" / "ci", PROVEN / head, dirs_exist_ok=True)
    unlucky = [
        line for file in sorted(kept.glob("*.unlucky")) for line in file.read_text("utf-8").splitlines()
    ]
    took_s = round(time.monotonic() - began)
    print("\n".join(log.read_text("utf-8", "replace").splitlines()[-LINES_SHOWN:]))
    for line in unlucky:
        print(f"unlucky: {line}")
    print(f"{head[:12]} is {'NOT ' if code else ''}proven, after {took_s} s")
    if code == 0:
        (PROVEN / f"{head}.json").write_text(json.dumps({"seconds": took_s, "unlucky": unlucky}))
    return code


def cloned(head: str, folder: Path) -> Path:
    """A fresh clone of a commit, with the folder `shared` beside it where we have one beside us."""
    clone = folder / "main"
    folder.chmod(0o755)  # tests become other users, who must be able to read the clone
    subprocess.run(["git", "clone", "--quiet", ROOT, clone], check=True)
    subprocess.run(["git", "-C", clone, "checkout", "--quiet", "--detach", head], check=True)
    beside = ROOT.parent / "shared"
    if beside.is_dir():
        (folder / "shared").symlink_to(beside)
    return clone


def look(head: str) -> int:
    """0 if HEAD is proven; else say which ancestor is."""
    if (PROVEN / f"{head}.json").exists():
        print(f"{head[:12]} is proven")
        return 0
    ancestors = git("rev-list", f"--max-count={ANCESTORS_MAX}", head).split()
    for number, each in enumerate(ancestors):
        if (PROVEN / f"{each}.json").exists():
            print(
                f"{head[:12]} is not proven; {each[:12]}, {number} commits before it, is\n"
                f"  prove it: python3 dev.py gate\n"
                f"  or go back to what is: git branch later && git reset --keep {each[:12]}"
            )
            return 1
    print(f"neither {head[:12]} nor what it stands on is proven: python3 dev.py gate")
    return 1


def prove() -> int:
    """Play all that the gate draws from, also through a pooler and in uvloop, and the campaigns.

    Evidence goes to .fencerow/prove. An hour on two quiet cores. Needs what tests/kit/outside.py names: PgBouncer,
    Redis, Spin, systemd, Prometheus.
    """
    evidence = ROOT / ".fencerow" / "prove"
    evidence.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(ROOT / ".fencerow" / "ci", ignore_errors=True)
    demanded = ("--all", "--outside", "demanded")
    # One word: pytest takes a file that is there, from the last time, for the tests that are asked for.
    races = ("--orders", "120", f"--evidence={evidence / 'races.json'}")
    steps = {
        "all tests": ("tools.gate", "all", *demanded, *races, "-m", "not timed"),
        "tests of real seconds": ("tools.gate", "all-timed", *demanded, "-m", "timed", "--forks", "1"),
        "through PgBouncer": (
            *("tools.gate", "all-pooled", *demanded, "--through", "pgbouncer", *WITHOUT_SQLITE),
            *("--", *POOLED),
        ),
        "in uvloop": (
            *("tools.gate", "all-uvloop", *demanded, "--loop", "uvloop", "-m", "not prove"),
            *("--", *IN_UVLOOP),
        ),
        "campaigns": ("tools.campaigns", "--evidence", str(evidence)),
    }
    failed = [name for name, words in steps.items() if not passes(name, words)]
    print(f"failed: {', '.join(failed)}" if failed else f"all of it holds; evidence: {evidence}")
    return 1 if failed else 0


def passes(name: str, words: tuple[str, ...]) -> bool:
    print(f"== {name}", flush=True)
    began = time.monotonic()
    code = subprocess.run([PYTHON, "-m", *words], cwd=ROOT, env={**os.environ, "CI": "true"}).returncode
    print(f"== {name}: {'holds' if code == 0 else 'FAILED'}, {time.monotonic() - began:.0f} s", flush=True)
    return code == 0


def environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith(OURS)}


def git(*words: str) -> str:
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.strip()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
