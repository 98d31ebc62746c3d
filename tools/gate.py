"""Plays tests for `.ci/run`: who fails is played again, alone, three times; one unlucky test throws no work away.

    python -m tools.gate NAME [options of pytest] [-- paths]        python -m tools.gate --sum

A test that fails again is guilty, and makes the run red. So does one that was not played, or not collected. One that
passes three times of three was unlucky: it is named, kept in .fencerow/ci/NAME.unlucky, and makes nothing red; more
than UNLUCKY_MAX of those do. GATE_UNTIL (seconds of the epoch) is the only bound on time.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(os.environ.get("GATE_ROOT", Path(__file__).resolve().parents[1]))
KEPT = ROOT / ".fencerow" / "ci"
ROUNDS = 3
AGAIN_MAX = 25  # more that failed are no bad luck
UNLUCKY_MAX = 8  # of thousands; more say that the tests prove nothing on this machine
# Alone a test has four times the patience (tests/kit/pace.py), and pytest waits four times as long for it.
ALONE = {"TESTS_SLOWER": "4"}
ALONE_TIMEOUT_S = 1200
ONCE = ("--durations", "--evidence")  # options, with a value, of the first run alone
TESTS_FAILED, PYTEST_BROKE = 1, 3  # exit codes of pytest
RANK = {"passed": 0, "skipped": 1, "failed": 2, "uncollected": 3}


@dataclass
class Played:
    """What one run told: the worst of each test, and why it failed first."""

    code: int
    planned: int = 0
    verdicts: dict[str, str] = field(default_factory=dict)
    why: dict[str, str] = field(default_factory=dict)

    def all(self, outcome: str) -> list[str]:
        return [test for test, found in self.verdicts.items() if found == outcome]

    @property
    def problem(self) -> str:
        """What is wrong beside single tests, if anything is."""
        failed, missing = len(self.all("failed")), max(0, self.planned - len(self.verdicts))
        if uncollected := self.all("uncollected"):
            return f"not collected: {', '.join(uncollected)}"
        if missing:
            return f"{missing} of {self.planned} tests were not played; pytest ended with code {self.code}"
        if self.code not in (0, TESTS_FAILED) or (self.code and not failed) or not self.planned:
            return f"pytest ended with code {self.code} after {len(self.verdicts)} tests"
        return f"{failed} tests failed: that is no bad luck" if failed > AGAIN_MAX else ""


def main(words: list[str]) -> int:
    if words == ["--sum"]:
        return summed()
    name, *rest = words
    cut = rest.index("--") if "--" in rest else len(rest)
    return judged(name, rest[:cut], rest[cut + 1 :])


def judged(name: str, options: list[str], paths: list[str]) -> int:
    """Play the tests, say what became of them, and return the exit code."""
    first = played(name, [f"--cost={KEPT / f'{name}.json'}", *options, *paths])
    if first.code == PYTEST_BROKE or (first.code < 0 and left_s() > 0):
        say(f"{name}: pytest itself broke (code {first.code}), so all is played once more")
        first = played(name, [*options, *paths])
    failed, problem = first.all("failed"), first.problem
    guilty = failed if problem else failed_again(name, options, failed)
    unlucky = [test for test in failed if test not in guilty]
    if len(unlucky) > UNLUCKY_MAX:
        problem = f"{len(unlucky)} unlucky tests are more than {UNLUCKY_MAX}"
    tell(name, first, guilty, unlucky)
    at_fault = len(guilty) or (1 if problem else 0)
    counts = (len(first.all("passed")) + len(unlucky), at_fault, len(first.all("skipped")), len(unlucky))
    with (KEPT / "counts.tsv").open("a") as file:
        file.write("\t".join(map(str, (name, *counts))) + "\n")
    say(f"{name}: {problem or (f'{len(guilty)} failed again, alone' if guilty else 'passed')}")
    return 1 if at_fault else 0


def tell(name: str, first: Played, guilty: list[str], unlucky: list[str]) -> None:
    for test in unlucky:
        print(f"UNLUCKY {test}\n  it failed once, then passed {ROUNDS} times alone: {first.why[test]!r}")
    for test in guilty:
        print(f"FAILED {test}\n  {first.why[test]!r}")
    (KEPT / f"{name}.unlucky").write_text("".join(f"{test}\t{first.why[test]!r}\n" for test in unlucky))


def failed_again(name: str, options: list[str], tests: list[str]) -> list[str]:
    """Those that do not pass in each round. A round is one process that plays one test after the other."""
    guilty: list[str] = []
    for number in range(1, ROUNDS + 1):
        left = [test for test in tests if test not in guilty]
        if not left:
            break
        say(f"round {number} of {ROUNDS}: {len(left)} of {name} alone")
        wanted = KEPT / f"{name}.again"
        wanted.write_text("".join(f"{test}\n" for test in left))
        alone = ["--forks", "0", "-p", "no:cacheprovider", "--timeout", str(ALONE_TIMEOUT_S), f"@{wanted}"]
        passed = set(played(f"{name}-{number}", [*repeated(options), *alone], ALONE).all("passed"))
        guilty += [test for test in left if test not in passed]
    return guilty


def repeated(options: list[str]) -> list[str]:
    """The options without those that are of the first run alone."""
    return [each for at, each in enumerate(options) if not {each, *options[max(0, at - 1) : at]} & {*ONCE}]


def played(name: str, words: list[str], environment: dict[str, str] | None = None) -> Played:
    """One run of pytest, in a session of its own: when the time is over, all that it started is ended with it."""
    KEPT.mkdir(parents=True, exist_ok=True)
    file = KEPT / f"{name}.verdicts"
    file.unlink(missing_ok=True)
    # In one word with its option: before pytest knows that, it takes a file that is there for a path of tests.
    command = [sys.executable, str(ROOT / "dev.py"), "test", f"--verdicts={file}", *words]
    run = subprocess.Popen(
        command, cwd=ROOT, env={**os.environ, **(environment or {})}, start_new_session=True
    )
    try:
        code = run.wait(max(1.0, left_s()))
    except subprocess.TimeoutExpired:
        say(f"the time is over for {name}")
        code = -signal.SIGTERM
    end(run)
    print(flush=True)  # a run that was ended may have left its line open
    return told(file, code)


def end(run: subprocess.Popen[bytes]) -> None:
    """End the run, if it still goes on, and what it left behind."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(run.pid, number)
        except ProcessLookupError:
            break
        if run.poll() is None:
            time.sleep(2.0)
    run.wait()


def told(file: Path, code: int) -> Played:
    """What the run wrote down of each test (tests/kit/verdicts.py)."""
    found = Played(code)
    for line in file.read_text("utf-8").splitlines() if file.exists() else ():
        said = json.loads(line)
        if "planned" in said:
            found.planned = said["planned"]
            continue
        test, outcome = said["test"], said["outcome"]
        if RANK[outcome] >= RANK[found.verdicts.get(test, "passed")]:
            found.verdicts[test] = outcome
        if said["why"]:
            found.why.setdefault(test, said["why"])
    return found


def left_s() -> float:
    return float(os.environ.get("GATE_UNTIL", "inf")) - time.time()


def summed() -> int:
    """The closing line: the sum of all runs, in words that every reader of such a line knows."""
    rows = [line.split("\t") for line in (KEPT / "counts.tsv").read_text().splitlines()]
    passed, failed, skipped, unlucky = (sum(int(row[at]) for row in rows) for at in range(1, 5))
    if unlucky:
        say(f"{unlucky} unlucky, named above: mend or delete them next")
    say(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed or not passed else 0


def say(text: str) -> None:
    print(f"gate: {text}", flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
