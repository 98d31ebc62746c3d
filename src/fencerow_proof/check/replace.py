"""Replacing: a DELETE and an INSERT on one table. Others must see the old rows or the new, never none or a mix."""

from __future__ import annotations

import re
from collections.abc import Sequence

from fencerow_proof.check.findings import Findings
from fencerow_proof.check.ground import Ground
from fencerow_proof.check.kinds import Action
from fencerow_proof.check.process import Process
from fencerow_proof.check.report import Fault, Finding

FILLING = re.compile(r"\binsert into\b|\bmerge into\b|\breplace into\b|^copy\b")


def replaced(actions: Sequence[Action]) -> dict[str, Action]:
    """The tables in which a run deletes and then inserts, with the statement that deletes."""
    deleted: dict[str, Action] = {}
    found: dict[str, Action] = {}
    for action in actions:
        for table in action.writes:
            text = " ".join(action.text.lower().split())
            if "delete from" in text or text.startswith("truncate"):
                deleted.setdefault(table, action)
            elif FILLING.search(text) and table in deleted:
                found.setdefault(table, deleted[table])
    return found


class Watch:
    """Looks at the replaced tables, as others see them, before each action of a run."""

    def __init__(self, actions: Sequence[Action], ours: str, findings: Findings) -> None:
        self.tables = {
            name: action for name, action in replaced(actions).items() if not name.startswith(ours)
        }
        self.looks = 0
        self._findings = findings

    def run(self, ground: Ground, process: Process) -> None:
        """Let a run go on to its end, and look at each moment."""
        seen: dict[str, list[list[str]]] = {table: [] for table in self.tables}
        while not process.is_over:
            ground.director.run(ground.scratch, process, until=len(process.trace))
            self._look(ground, seen)
            if process.pending is not None:
                process.go()
        for table, moments in seen.items():
            self._judge(table, moments)

    def _look(self, ground: Ground, seen: dict[str, list[list[str]]]) -> None:
        for table in self.tables:
            self.looks += 1
            seen[table].append(ground.scratch.reader().rows(table))

    def _judge(self, table: str, moments: list[list[str]]) -> None:
        between = [rows for rows in moments if rows not in (moments[0], moments[-1])]
        if not between:
            return
        action = self.tables[table]
        fewest = min(between, key=len)
        self._findings.add(
            Finding(
                Fault.REPLACE_TORN,
                action.place,
                action.line,
                f"others see {len(fewest)} rows of {table} in between, where there were {len(moments[0])}",
                table=table,
                story=("a run on what a run before it had left, seen from another connection",),
            )
        )
