"""Jobs worked over HTTP: endpoints, what became of their newest attempts, and callbacks that are waited for or late."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from fencerow.app import App
from fencerow.command.times import span
from fencerow.core.finding import Finding, warn
from fencerow.db.run import ask
from fencerow.db.text import amount
from fencerow.web.dashboard.counting.worked import LOOK, WorkedLately, worked_lately, worked_waits
from fencerow.web.dashboard.places import place_of, place_told
from fencerow.web.dashboard.screen import Look, Screen, Section
from fencerow.web.worked.attempts import standing
from fencerow.web.worked.checks import LATE_S, LOOKED_AT
from fencerow.web.worked.known import worked_by

PAGE = 50
FEW = 5  # attempts of a kind of which more than half failed are a problem from here on


@dataclass(frozen=True, slots=True)
class EndpointShown:
    """An endpoint, by the job that it works. `url` None: the application that declares it is not known here."""

    job: str
    url: str | None
    later: bool
    lately: WorkedLately | None


async def worked(look: Look) -> dict[str, Any]:
    """Three statements: how many wait, what became of the newest, a page of those that wait."""
    after = place_of(look.query.get("after"), "an attempt")
    stands = await look.client.arun(ask(standing(look=LOOKED_AT, late_s=LATE_S)))
    lately = await look.client.arun(ask(worked_lately()))
    waits, now_us = await look.client.arun(ask(worked_waits(after, limit=PAGE + 1)))
    shown, last = waits[:PAGE], waits[PAGE - 1] if len(waits) > PAGE else None
    return {
        "now_us": now_us,
        "endpoints": endpoints_of(look.app, lately),
        "problems": list(problems_of(stands.late, stands.late_s, lately)),
        "standing": stands,
        "most": LOOKED_AT,
        "look": LOOK,
        "waits": shown,
        "behind": None if last is None else place_told(last.look_at_us, last.job_id),
        "is_first": not look.query.get("after"),
    }


def endpoints_of(app: App, lately: Sequence[WorkedLately]) -> list[EndpointShown]:
    """Those that the application declares, and those of which attempts are there, by the name of their job."""
    seen = {each.name: each for each in lately}
    found = {}
    for name, working in worked_by(app).items():
        endpoint = working.endpoint
        found[name] = EndpointShown(
            name, plain_url(endpoint.url), endpoint.callbacks is not None, seen.get(name)
        )
    for name, each in seen.items():
        found.setdefault(name, EndpointShown(name, None, True, each))
    return [found[name] for name in sorted(found)]


def plain_url(url: str) -> str:
    """Where it is, without what may be secret there: the name, the password and what stands behind the `?`."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    return f"{parts.scheme}://{host}{parts.path}{'?…' if parts.query else ''}"


def problems_of(late: int, late_s: float, lately: Sequence[WorkedLately]) -> Iterator[Finding]:
    """What needs a person, and what to do about it."""
    if late:
        yield warn(
            "endpoints that nobody gives up",
            f"{amount(late, 'attempt')} overdue, the first for {span(late_s)}, and no worker wakes the job",
            "run a worker whose application declares these jobs with `callbacks=`",
        )
    for each in lately:
        bad = each.failed + each.silent
        if each.sent >= FEW and 2 * bad > each.sent:
            yield warn(
                f"endpoint of {each.name or 'jobs that are gone'}",
                f"of its newest {amount(each.sent, 'attempt')} {each.failed} failed by the callback and {each.silent} "
                "were never answered",
                "look at the log of the endpoint, and whether it reaches the gateway that `callbacks=` names",
            )


SCREENS = (Screen("worked", "/worked", "Work over HTTP", worked, section=Section.SYSTEM, place=214, key="t"),)
