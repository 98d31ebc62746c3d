"""Health: everything that the doctor looks at, the worst first, and what to do."""

from __future__ import annotations

from typing import Any

from fencerow.core.finding import Level
from fencerow.web.dashboard.roles import Role
from fencerow.web.dashboard.screen import Act, Action, Look, Screen, Section, Told
from fencerow.web.maintenance.refusing import refuse_canary

WORDS = {Level.FAIL: "failure", Level.WARN: "warning", Level.INFO: "to know", Level.OK: "well"}


async def health(look: Look) -> dict[str, Any]:
    """One statement, the clock; what the doctor finds was found beside it, and is kept for a minute."""
    found = await look.problems.found()
    findings = [] if found is None else found.findings
    return {
        "now_us": await look.now_us(),
        "looked_us": None if found is None else int(found.at_s * 1e6),
        "told": [each for each in findings if each.level is not Level.OK],
        "well": [each for each in findings if each.level is Level.OK],
        "wrong": 0 if found is None else len(found.wrong),
        "words": WORDS,
        "canary": look.canary,
        "bound_s": look.app.config.lease_s + look.app.config.sweep_s,
    }


async def send_canary(act: Act) -> Told:
    """Send a canary, beside the pages."""
    refuse_canary(await act.client.maintenance.aget())
    act.canary.begin(act.app.config, act.person)
    return Told("The canary is under way. This page shows what it measures.")


# It starts two processes here, so it is not for everybody.
ACTIONS = (Action("/health/canary", send_canary, role=Role.ADMIN),)
SCREENS = (
    Screen(
        "health", "/health", "Health", health, section=Section.SYSTEM, place=240, key="d", actions=ACTIONS
    ),
)
