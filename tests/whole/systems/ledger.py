"""All scenarios of the four systems, and what those that are not built yet wait for."""

from __future__ import annotations


def _numbered(letter: str, count: int) -> tuple[str, ...]:
    return tuple(f"{letter}.{number}" for number in range(1, count + 1))


SCENARIOS = {
    "flydocs": _numbered("A", 16),
    "dealbot": _numbered("B", 16),
    "tzurot": _numbered("C", 18),
    "chatbotx": _numbered("D", 16),
}

# The later part of the product that each scenario needs: none waits any more.
WAITS_FOR: dict[str, str] = {}
