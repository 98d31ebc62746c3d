"""Who is probed: the registry of providers, which others keep. It may be away; then nobody vanishes."""

from __future__ import annotations

from dataclasses import dataclass

import httpx

from examples.probes.base import REGISTRY

PATIENCE_S = 5.0


@dataclass(frozen=True, slots=True)
class Provider:
    """One that is listed."""

    name: str
    url: str
    blocked: bool


def active() -> list[str]:
    """The names of all who are to be probed: each gets its own rows in the schedules.

    Raises:
        httpx.HTTPError: the registry did not answer. The rows stay as they are.
    """
    answer = httpx.get(f"{REGISTRY}/providers", timeout=PATIENCE_S, trust_env=False)
    answer.raise_for_status()
    return [each["name"] for each in answer.json() if not each["blocked"]]


async def listed() -> list[Provider]:
    """All providers, as of now.

    Raises:
        httpx.HTTPError: the registry did not answer.
    """
    async with httpx.AsyncClient(timeout=PATIENCE_S, trust_env=False) as http:
        answer = await http.get(f"{REGISTRY}/providers")
        answer.raise_for_status()
    return [Provider(**each) for each in answer.json()]
