"""What the authors of examples write themselves: how many lines it is, and which guards of their own stand in it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

# What an author writes who has no guards.
GUARDS = (
    "FOR UPDATE",
    "SKIP LOCKED",
    "pg_advisory",
    "pg_try_advisory",
    "LOCK TABLE",
    "BEGIN",
    "COMMIT",
    "SET state",
    "DELETE FROM",
    "time.sleep",
    "asyncio.sleep",
    "threading.Timer",
    "fcntl",
)


def code_of(path: Path) -> list[str]:
    """The lines that are neither blank, nor a comment, nor in a docstring."""
    text = re.sub(r'"""[\s\S]*?"""', "", path.read_text("utf-8"))
    return [line for line in text.splitlines() if line.strip() and not line.strip().startswith(("#", "--"))]


def with_guard(guard: str, sources: Iterable[Path]) -> list[str]:
    """The names of those in whose code it stands."""
    return [path.name for path in sources if guard in "\n".join(code_of(path))]
