"""Health: everything that the doctor looks at, the worst first, and what to do."""

from __future__ import annotations

from typing import Any

from fencerow.core.finding import Level
from fencerow.db.run import ask
from fencerow.doctor.horizon.holders import cost, holders
from fencerow.web.dashboard.roles import Role
from fencerow.web.dashboard.screen import Act, Action, Look, PressAnswer, Screen, Section
from fencerow.web.maintenance.refusing import refuse_canary

HELD_S = 10.0  # what is over sooner costs nothing
HOLDERS_SHOWN = 50
WORDS = {Level.FAIL: "failure", Level.WARN: "warning", Level.INFO: "to know", Level.OK: "well"}


async def health(look: Look) -> dict[str, Any]:
    """Three statements at most: the clock, and on PostgreSQL who holds back the horizon and what that costs. What the
    doctor finds was found beside it, and is kept for a minute."""
    found = await look.problems.found()
    findings = [] if found is None else found.findings
    return {
        "now_us": await look.now_us(),
        "looked_us": None if found is None else int(found.at_s * 1e6),
        "told": [each for each in findings if each.level is not Level.OK],
        "well": [each for each in findings if each.level is Level.OK],
        "wrong": 0 if found is None else len(found.wrong),
        "words": WORDS,
        **await _horizon(look),
        "canary": look.canary,
        "bound_s": look.app.config.lease_s + look.app.config.sweep_s,
    }


async def _horizon(look: Look) -> dict[str, Any]:
    """Who holds back the horizon; None where there is no server that has one."""
    if not look.app.engine.traits.has_server:
        return {"holders": None, "cost": None}
    found = await look.client.arun(ask(holders()))
    spent = await look.client.arun(ask(cost()))
    shown = [each for each in found if (age_s := each.age_s(spent.now_us)) is None or age_s > HELD_S]
    return {"holders": shown[:HOLDERS_SHOWN], "cost": spent}


async def send_canary(act: Act) -> PressAnswer:
    """Send a canary, beside the pages."""
    refuse_canary(await act.client.maintenance.aget())
    act.canary.begin(act.app.config, act.person)
    return PressAnswer("The canary is under way. This page shows what it measures.")


# It starts two processes here, so it is not for everybody.
ACTIONS = (Action("/health/canary", send_canary, role=Role.ADMIN),)
SCREENS = (
    Screen(
        "health", "/health", "Health", health, section=Section.SYSTEM, place=240, key="d", actions=ACTIONS
    ),
)
