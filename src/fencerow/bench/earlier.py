"""An earlier run beside this one: how each figure has changed, row by row."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fencerow.core.errors import InvalidInput

Row = tuple[str, str, str]  # the first word of the database, the question, and what was measured


@dataclass(frozen=True, slots=True)
class AgainstEarlier:
    """What an earlier run found of a row, and by what this one's number is that times as large.

    Both are ratios to what was measured beside them, where both runs have one: machines differ, and these differ less.
    """

    then: float
    times: float


class EarlierRun:
    """The figures of a file that `fencerow bench --save` wrote."""

    def __init__(self, evidence: Mapping[str, Any]) -> None:
        self.told = f"{evidence['at']}, commit {evidence['commit']}, {evidence['machine']}"
        self._figures: dict[Row, Mapping[str, Any]] = {row_of(each): each for each in evidence["figures"]}

    def change(self, figure: Mapping[str, Any]) -> AgainstEarlier | None:
        """How a figure of this run, as evidence has it, differs from that one; None if that run has none of it."""
        before = self._figures.get(row_of(figure))
        if before is None:
            return None
        kind = "ours" if before["ratio"] is None or figure["ratio"] is None else "ratio"
        then, now = float(before[kind]), float(figure[kind])
        return AgainstEarlier(then, now / then) if then else None


def row_of(figure: Mapping[str, Any]) -> Row:
    """By what a figure is found in another run. Of the database only its kind counts: releases may differ."""
    return str(figure["database"]).split()[0], str(figure["question"]), str(figure["what"])


def earlier_run(file: Path) -> EarlierRun:
    """Read an evidence file.

    Raises:
        InvalidInput: it cannot be read, or is none.
    """
    try:
        return EarlierRun(json.loads(file.read_text("utf-8")))
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        raise InvalidInput(
            f"--beside: {file} is no evidence of a bench ({error!r})",
            "a file that `fencerow bench --save FILE` wrote is expected",
            "name such a file",
        ) from error
