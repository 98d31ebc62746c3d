"""What each process of a storm was promised, one line per fact, outside the database under test.

A line is written by one call to the kernel, so a process that is killed leaves whole lines.
`ask` begins an operation; `ok`, `no` (nothing was done) or `unknown` ends it. One without an end is unknown too.
"""

from __future__ import annotations

import itertools
import json
import os
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Line = dict[str, Any]


class Record:
    """The record of one process, for all its threads."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()

    def write(self, phase: str, **facts: Any) -> None:
        line = json.dumps({"phase": phase, "at": round(time.time(), 6), **facts})
        os.write(self._file, line.encode() + b"\n")

    def ask(self, verb: str, **facts: Any) -> int:
        """Begin an operation; returns its number."""
        with self._lock:
            number = next(self._numbers)
        self.write("ask", op=number, verb=verb, **facts)
        return number


@dataclass
class Told:
    """One operation: what was asked and what was answered."""

    verb: str
    asked: Line
    phase: str = "unknown"
    answer: Line = field(default_factory=dict)


def operations(paths: list[Path]) -> Iterator[Told]:
    """All operations of these records."""
    for path in paths:
        open_ones: dict[int, Told] = {}
        for line in lines(path):
            if line["phase"] == "ask":
                open_ones[line["op"]] = Told(line["verb"], line)
            elif "op" in line:
                told = open_ones[line["op"]]
                told.phase, told.answer = line["phase"], line
        yield from open_ones.values()


def lines(path: Path) -> Iterator[Line]:
    with path.open() as file:
        yield from map(json.loads, file)
