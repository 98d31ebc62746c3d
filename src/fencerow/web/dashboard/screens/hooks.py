"""Webhooks that come in: each hook with its sender, when it took one last, what was refused and what came again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from fencerow.app import App
from fencerow.command.times import span
from fencerow.core.finding import Finding, warn
from fencerow.db.run import ask
from fencerow.web.dashboard.screen import Look, Screen, Section
from fencerow.web.inbound.declared import TAG, hooks_of
from fencerow.web.tallies.operations import HookTally, hook_tallies

HOOKS_SHOWN = 500


@dataclass(frozen=True, slots=True)
class HookShown:
    """A hook. No `scheme` and `job`: who declares it is not known here. No `tally`: nothing came."""

    name: str
    scheme: str | None
    job: str | None
    tally: HookTally | None


async def hooks(look: Look) -> dict[str, Any]:
    """One statement: what came to hooks. Which there are, the application says."""
    tallies, now_us = await look.client.arun(ask(hook_tallies(limit=HOOKS_SHOWN + 1)))
    found = known_hooks(look.app, tallies)
    return {
        "now_us": now_us,
        "hooks": found[:HOOKS_SHOWN],
        "hidden": max(0, len(found) - HOOKS_SHOWN),
        "problems": list(problems_of(found, now_us)),
        "tag": TAG,
    }


def known_hooks(app: App, tallies: Sequence[HookTally]) -> list[HookShown]:
    """Those that the application declares, and those to which something came, by name."""
    noted = {each.hook: each for each in tallies}
    found = {
        each.name: HookShown(each.name, each.scheme.title, each.job.name, noted.get(each.name))
        for each in hooks_of(app)
    }
    for name, tally in noted.items():
        found.setdefault(name, HookShown(name, None, None, tally))
    return [found[name] for name in sorted(found)]


def problems_of(found: Sequence[HookShown], now_us: int) -> Iterator[Finding]:
    """Hooks of which the latest webhook was refused."""
    for each in found:
        tally = each.tally
        if tally is None or tally.refused_at_us is None:
            continue
        taken_us = max(tally.received_at_us or 0, tally.repeated_at_us or 0)
        if tally.refused_at_us > taken_us:
            ago = span((now_us - tally.refused_at_us) / 1e6)
            last = (
                "none was ever taken"
                if not taken_us
                else f"the last one taken came {span((now_us - taken_us) / 1e6)} ago"
            )
            yield warn(
                f"hook {each.name} refuses what comes",
                f"the latest webhook was refused {ago} ago: {tally.refusal}; {last}",
                "compare the secret, the scheme and the clock with the sender's, and look at its page of deliveries",
            )


SCREENS = (Screen("hooks", "/hooks", "Webhooks in", hooks, section=Section.SYSTEM, place=212, key="i"),)
