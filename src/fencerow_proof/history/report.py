"""What the checker found: which invariants were decided, on how much evidence, and the lines that prove a fault."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from fencerow_proof.history.acts import Act, History

SHOWN_MAX = 20
LINES_MAX = 12

NAMES = {
    "I1": "no lost job",
    "I2": "single authority",
    "I3": "no overlapping leases",
    "I4": "legal moves only",
    "I5": "exactly-once effects",
    "I6": "attempts are counted once",
    "I7": "one answer per key",
    "I8": "a cancel stands",
    "I9": "recovery within its bound",
    "I14": "limits are kept",
    "I15": "nothing appears or vanishes",
    "I17": "a refusal is clean",
    "I18": "turns are kept",
    "I19": "affinity is kept",
}


@dataclass(frozen=True, slots=True)
class Proof:
    """One line of a history file."""

    path: Path
    number: int
    text: str = ""


@dataclass(frozen=True, slots=True)
class Breach:
    """One invariant broken: of which job, how, and by which acts."""

    invariant: str
    what: str
    job: str | None = None
    acts: tuple[Act, ...] = ()


@dataclass(slots=True)
class Report:
    """The result of a check. `looked` says how many cases each invariant was decided on: 0 proves nothing."""

    history: History
    violations: list[Breach] = field(default_factory=list[Breach])
    looked: Counter[str] = field(default_factory=Counter[str])
    undecided: int = 0  # jobs whose order had too many readings to try them all
    notes: list[str] = field(default_factory=list[str])

    @property
    def is_clean(self) -> bool:
        return not self.violations

    @property
    def broken(self) -> set[str]:
        """The invariants that do not hold."""
        return {each.invariant for each in self.violations}

    def add(self, invariant: str, what: str, job: str | None = None, acts: Sequence[Act] = ()) -> None:
        self.violations.append(Breach(invariant, what, job, tuple(acts)))

    def proofs(self, violation: Breach) -> list[Proof]:
        """The lines behind a violation, in the order of their time."""
        found: list[Proof] = []
        for act in sorted(violation.acts, key=lambda each: each.start_us):
            path = self.history.sources[act.op[0]].path
            found += [Proof(path, number) for number in dict.fromkeys(act.lines) if number]
        return _with_text(found[:LINES_MAX])

    def text(self) -> str:
        """The report for people."""
        lines = [
            f"{len(self.history.sources)} files, {len(self.history.by_job)} jobs, {self.history.acts} acts",
            *(_decided(name, title, self) for name, title in NAMES.items()),
            *self.notes,
        ]
        if self.undecided:
            lines.append(f"{self.undecided} jobs had too many possible orders to try them all")
        for violation in self.violations[:SHOWN_MAX]:
            lines += self._shown(violation)
        if len(self.violations) > SHOWN_MAX:
            lines.append(f"… and {len(self.violations) - SHOWN_MAX} more violations")
        return "\n".join(lines)

    def _shown(self, violation: Breach) -> list[str]:
        subject = f" job {violation.job}:" if violation.job else ""
        return [
            "",
            f"{violation.invariant} ({NAMES[violation.invariant]}):{subject} {violation.what}",
            *(f"  {proof.path.name}:{proof.number}: {proof.text}" for proof in self.proofs(violation)),
        ]


def _decided(name: str, title: str, report: Report) -> str:
    broken = sum(each.invariant == name for each in report.violations)
    looked = report.looked[name]
    if broken:
        return f"{name:4} BROKEN {broken} times   {title} ({looked} looked at)"
    return (
        f"{name:4} {'holds' if looked else 'not decided: nothing to look at'}   {title} ({looked} looked at)"
    )


def _with_text(proofs: list[Proof]) -> list[Proof]:
    """Read the lines themselves; only those that are shown."""
    wanted: dict[Path, set[int]] = {}
    for proof in proofs:
        wanted.setdefault(proof.path, set()).add(proof.number)
    texts: dict[tuple[Path, int], str] = {}
    for path, numbers in wanted.items():
        with path.open(encoding="utf-8", errors="replace") as file:
            for number, text in enumerate(file, 1):
                if number in numbers:
                    texts[path, number] = text.strip()
    return [Proof(each.path, each.number, texts.get((each.path, each.number), "")) for each in proofs]
