#!/usr/bin/env python3
"""The project's one entry point: python3 dev.py VERB; without one it lists them. Needs Python 3.11, nothing else."""

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NoReturn

# This file must parse and reach these lines on any Python 3, so that an old one is told what to do.
if sys.version_info < (3, 11):
    sys.exit(
        f"error: dev.py needs Python 3.11 or newer\n"
        f"  this is Python {sys.version_info[0]}.{sys.version_info[1]} ({sys.executable})\n"
        f"  run it with a newer one, for example: python3.11 dev.py {' '.join(sys.argv[1:])}"
    )

ROOT = Path(__file__).resolve().parent
VENV = ROOT / ".venv"
BIN = VENV / "bin"
STAMP = VENV / "fencerow.stamp"
PRIVATE = ROOT / ".fencerow"
LOCK = ROOT / "requirements" / "dev.txt"
PROJECT = ROOT / "pyproject.toml"

USAGE = """\
usage: python3 dev.py VERB [--fresh] [ARGUMENTS]

  demo   run `fencerow demo ARGUMENTS`
  test   run the tests; ARGUMENTS go to pytest (--all: also those that are alike, and long ones)
  race   play every order of the races, as many as there are; --long: of those in docs/races.md alone, and to the
         last; ARGUMENTS go to pytest (--evidence FILE; tests in tests/proof/race: these alone)
  crash  break every operation off at every point; ARGUMENTS go to pytest (tests in tests/proof/crash: these alone)
  storm  strike a working system with faults of every kind; ARGUMENTS: --jobs 50000 --faults 2000 --evidence FILE
  bus    publish and read events while drainers are killed; ARGUMENTS: --events 20000 --publishers 40 --evidence FILE
  flows  run flows while workers are killed; ARGUMENTS: --flows 1000 --kills 300 --engine sqlite --evidence FILE
  bench  how fast it is here, beside the bare statements; ARGUMENTS go to `fencerow bench` (--quick)
  check  lint, format, types, floors and pages
  site   build the documentation as a site, which needs no network: ARGUMENTS: a folder, else .fencerow/site
  house  how far a new feature is from touching nothing but its own folder: counts, and their goals
  gate   play .ci/run on HEAD in a fresh clone, and keep it as proven; --look only says whether it is
  prove  play everything: all tests, through PgBouncer, in uvloop, campaigns; an hour
  stress play tests on a machine that stands still again and again (needs root); ARGUMENTS go to pytest
  lock   remake requirements/dev.txt from pyproject.toml; ARGUMENTS go to uv (--upgrade)
  env    make .venv from the lock, if it is missing or out of date

--fresh, right after the verb, makes .venv anew first.
"""

CHECKS = (  # those that take longest begin first
    ("basedpyright",),
    ("mypy",),
    ("python", "-m", "tools.house"),
    ("python", "-m", "tools.site", "--check"),
    ("ruff", "check", "."),
    ("ruff", "format", "--check", "."),
    ("lint-imports", "--no-logo"),
)


def main(arguments: list[str]) -> int:
    verb, rest = (arguments[0], arguments[1:]) if arguments else ("", [])
    if verb not in VERBS:
        asked_for_help = verb in ("-h", "--help", "help")
        print(USAGE, end="", file=sys.stdout if asked_for_help else sys.stderr)
        return 0 if asked_for_help else 2
    fresh = rest[:1] == ["--fresh"]
    return VERBS[verb](rest[1:] if fresh else rest, fresh)


def demo(arguments: list[str], fresh: bool) -> int:
    ensure_env(fresh)
    become(str(BIN / "fencerow"), "demo", *arguments)


def test(arguments: list[str], fresh: bool) -> int:
    ensure_env(fresh)
    os.chdir(ROOT)
    # A test waits about half of its time: for a lease, a process, a server. Long ones must not be left for the end.
    spread = [] if "--pdb" in arguments else ["--forks", str(processes())]
    become(str(BIN / "python"), "-m", "pytest", *spread, *arguments)


def processes() -> int:
    """How many processes of tests this machine keeps busy; each has a PostgreSQL of its own."""
    return min(8, 2 * (os.cpu_count() or 2))


def race(arguments: list[str], fresh: bool) -> int:
    # What `test` samples is played whole here, up to a number of orders that ends within an hour.
    orders = ["--all", "--orders", "5000", "--timeout", "3600"]
    return test([*orders, *within("tests/proof/race", arguments)], fresh)


def crash(arguments: list[str], fresh: bool) -> int:
    return test(["--all", *within("tests/proof/crash", arguments)], fresh)


def within(folder: str, arguments: list[str]) -> list[str]:
    """The arguments for pytest: with all tests of this folder, unless they name tests themselves."""
    named = [each for each in arguments if (ROOT / each.partition("::")[0]).is_relative_to(ROOT / folder)]
    return arguments if named else [folder, *arguments]


def storm(arguments: list[str], fresh: bool) -> int:
    ensure_env(fresh)
    os.chdir(ROOT)
    become(str(BIN / "python"), "-m", "tests.proof.storm", *arguments)


def bus(arguments: list[str], fresh: bool) -> int:
    ensure_env(fresh)
    os.chdir(ROOT)
    become(str(BIN / "python"), "-m", "tests.events.bus", *arguments)


def flows(arguments: list[str], fresh: bool) -> int:
    ensure_env(fresh)
    os.chdir(ROOT)
    become(str(BIN / "python"), "-m", "tests.flows.campaign", *arguments)


def bench(arguments: list[str], fresh: bool) -> int:
    ensure_env(fresh)
    become(str(BIN / "fencerow"), "bench", *arguments)


def gate(arguments: list[str], _fresh: bool) -> int:
    become(sys.executable, str(ROOT / "tools" / "proven.py"), "gate", *arguments)


def prove(arguments: list[str], fresh: bool) -> int:
    ensure_env(fresh)
    become(sys.executable, str(ROOT / "tools" / "proven.py"), "prove", *arguments)


def stress(arguments: list[str], fresh: bool) -> int:
    ensure_env(fresh)
    become(sys.executable, str(ROOT / "tools" / "stress.py"), *arguments)


def house(_arguments: list[str], fresh: bool) -> int:
    ensure_env(fresh)
    os.chdir(ROOT)
    become(str(BIN / "python"), "-m", "tools.house.road")


def site(arguments: list[str], fresh: bool) -> int:
    ensure_env(fresh)
    folders = [str(Path(folder).resolve()) for folder in arguments]
    os.chdir(ROOT)
    become(str(BIN / "python"), "-m", "tools.site", *folders)


def check(_arguments: list[str], fresh: bool) -> int:
    """Run every check, also after one has failed: a list of all that is wrong saves rounds. Each core runs one."""
    ensure_env(fresh)
    failed = []
    with ThreadPoolExecutor(os.cpu_count()) as cores:
        for command, done in zip(CHECKS, cores.map(checked, CHECKS), strict=True):
            say(f"· {' '.join(command)}", "1")
            print(done.stdout, end="", flush=True)
            if done.returncode != 0:
                failed.append(command)
    for command in failed:
        say(f"failed: {' '.join(command)}", "31")
    if not failed:
        say("all checks pass", "32")
    return 1 if failed else 0


def lock(arguments: list[str], _fresh: bool) -> int:
    require_venv()
    uv = PRIVATE / "uv"
    if not (uv / "bin" / "uv").exists():
        make_venv(uv)
        run(uv / "bin" / "python", *PIP_INSTALL, "uv")
    LOCK.parent.mkdir(exist_ok=True)
    # Run in the root with relative names: the names given are written into the file.
    run(
        *(uv / "bin" / "uv", "pip", "compile", "--quiet", "--universal", "--python-version", "3.11"),
        *("--generate-hashes", "--no-emit-index-url", "--no-emit-find-links"),
        *("--custom-compile-command", "python3 dev.py lock"),
        *("--extra", "dev", PROJECT.name, "--output-file", LOCK.relative_to(ROOT), *arguments),
    )
    say(f"wrote {LOCK.relative_to(ROOT)}")
    return 0


def env(_arguments: list[str], fresh: bool) -> int:
    ensure_env(fresh)
    say(f"{VENV.relative_to(ROOT)} is ready")
    return 0


VERBS = {
    "demo": demo,
    "test": test,
    "race": race,
    "crash": crash,
    "storm": storm,
    "bus": bus,
    "flows": flows,
    "bench": bench,
    "check": check,
    "site": site,
    "house": house,
    "gate": gate,
    "prove": prove,
    "stress": stress,
    "lock": lock,
    "env": env,
}
# The tests start hundreds of interpreters: one that may keep no bytecode compiles the package anew in each.
NOT_HANDED_ON = ("PYTHONHOME", "PYTHONPATH", "PYTHONDONTWRITEBYTECODE")
PIP_INSTALL = ("-m", "pip", "install", "-qq", "--disable-pip-version-check")


def ensure_env(fresh: bool) -> None:
    """Leave a `.venv` that matches the lock. Two at once wait for each other; a crash leaves no stamp."""
    asked_at = time.time()
    PRIVATE.mkdir(exist_ok=True)
    with (PRIVATE / "env.lock").open("w") as guard:
        fcntl.flock(guard, fcntl.LOCK_EX)
        found = STAMP.read_text().split() if STAMP.exists() else []
        # Whoever waited while another made it anew has a fresh one already, and must not pull it away.
        if fresh and found and STAMP.stat().st_mtime < asked_at:
            found = []
        wanted = [fingerprint(LOCK.read_bytes(), sys.version.encode()), fingerprint(PROJECT.read_bytes())]
        if found[:1] != wanted[:1]:
            make_env()
            found = []
        if found != wanted:
            run(BIN / "python", *PIP_INSTALL, "--no-deps", "--no-build-isolation", "-e", ROOT)
            STAMP.write_text("\n".join(wanted) + "\n")


def make_env() -> None:
    require_venv()
    started = time.monotonic()
    version = ".".join(map(str, sys.version_info[:3]))
    say(f"making .venv with Python {version} from {LOCK.relative_to(ROOT)} …")
    STAMP.unlink(missing_ok=True)
    shutil.rmtree(VENV, ignore_errors=True)
    make_venv(VENV)
    # Most of these modules are never imported: what is, Python compiles when that happens, on any core.
    run(
        BIN / "python", *PIP_INSTALL, "--no-compile", "--require-hashes", "--only-binary", ":all:", "-r", LOCK
    )
    say(f"made .venv in {time.monotonic() - started:.0f} s")


def require_venv() -> None:
    try:
        import ensurepip
        import venv
    except ImportError as error:
        sys.exit(
            f"error: this Python cannot make virtual environments\n"
            f"  {error} ({sys.executable})\n"
            f"  install it (Debian, Ubuntu: apt-get install python3-venv) or use another Python 3.11 or newer"
        )
    del ensurepip, venv


def make_venv(path: Path) -> None:
    run(sys.executable, "-m", "venv", "--clear", path)


def fingerprint(*parts: bytes) -> str:
    return hashlib.sha256(b"\0".join(parts)).hexdigest()


def checked(command: tuple[str, ...]) -> subprocess.CompletedProcess[str]:
    """One check with all that it says, so that it stands together."""
    return subprocess.run(
        [BIN / command[0], *command[1:]],
        cwd=ROOT,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def run(*command: object) -> None:
    """Run one step of our own making; its failure is ours, told in its own words."""
    done = subprocess.run([str(part) for part in command], cwd=ROOT, env=environment())
    if done.returncode != 0:
        told = " ".join(map(str, command))
        sys.exit(f"error: this command failed (exit code {done.returncode}):\n  {told}")


def become(*command: str) -> NoReturn:
    """Replace this process: signals, exit code and the last line of output stay the tool's own."""
    sys.stdout.flush()
    os.execve(command[0], list(command), environment())


def environment() -> dict[str, str]:
    """The caller's environment, without what would let another Python's packages in, or have it compile each time."""
    kept = {name: value for name, value in os.environ.items() if name not in NOT_HANDED_ON}
    return kept | {"VIRTUAL_ENV": str(VENV), "PATH": f"{BIN}{os.pathsep}{os.environ.get('PATH', os.defpath)}"}


def say(text: str, colour: str = "") -> None:
    plain = not colour or "NO_COLOR" in os.environ or not sys.stdout.isatty()
    print(text if plain else f"\033[{colour}m{text}\033[0m", flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
