"""Queues as options name them: `mail`, or `mail:5` with slots of its own.

A colon or a comma that belongs to a name stands behind a backslash: `tenant\\:7`. The last other colon begins the
slots.
"""

from __future__ import annotations

import re

TOKEN = re.compile(r"\\.|.", re.DOTALL)
ESCAPED = re.compile(r"\\([\\:,])")


def queue_list(text: str) -> list[tuple[str, str | None]]:
    """The names in `mail:5,docs`, each with what stands behind its colon."""
    return [named_queue(part.strip()) for part in _split(text, ",")]


def named_queue(text: str) -> tuple[str, str | None]:
    """The name in `mail:5`, and what stands behind its last colon; None: no colon is there."""
    *name, last = _split(text, ":")
    if not name:
        return ESCAPED.sub(r"\1", last), None
    return ESCAPED.sub(r"\1", ":".join(name)), last


def _split(text: str, mark: str) -> list[str]:
    parts = [""]
    for token in TOKEN.findall(text):
        if token == mark:
            parts.append("")
        else:
            parts[-1] += token
    return parts
