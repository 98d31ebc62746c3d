"""Approvals: what jobs ask people, since when and until when; approve or refuse, as the address in the mail does."""

from __future__ import annotations

from typing import Any

from fencerow.core.model.ids import parse_id
from fencerow.core.store.hints import hints_of_queued
from fencerow.db.run import Procedure, WakeUp, ask
from fencerow.steps.signals import Signalled
from fencerow.web.dashboard.counting.approvals import (
    LOOK,
    QuestionPage,
    answer_by_id,
    approvals_of_job,
    open_approvals,
)
from fencerow.web.dashboard.places import place_of, place_told
from fencerow.web.dashboard.screen import Act, Action, Look, PressAnswer, Screen, Section

PAGE = 50
SOON_S = 3_600.0  # what expires within this stands out


async def approvals(look: Look) -> dict[str, Any]:
    """One statement: those that can be answered, or all of one job."""
    job = look.query.get("job", "").strip()
    page = await _of_job(look, job) if job else await _open(look)
    shown = page.questions[:PAGE] if not job else page.questions
    behind = None
    if not job and len(page.questions) > PAGE:
        behind = place_told(shown[-1].expires_at_us, shown[-1].id)
    elif page.edge is not None:
        behind = place_told(*page.edge)
    return {
        "now_us": page.now_us,
        "questions": shown,
        "job": job,
        "behind": behind,
        "is_whole": behind is None or len(page.questions) > PAGE,
        "is_first": not look.query.get("after"),
        "look": LOOK,
        "soon_us": page.now_us + int(SOON_S * 1e6),
    }


async def _of_job(look: Look, job: str) -> QuestionPage:
    return await look.client.arun(ask(approvals_of_job(parse_id(job))))


async def _open(look: Look) -> QuestionPage:
    after = place_of(look.query.get("after"), "a question")
    return await look.client.arun(ask(open_approvals(after, limit=PAGE + 1)))


async def approve(act: Act) -> PressAnswer:
    """Answer with yes, once."""
    return await _answered(act, yes=True)


async def refuse(act: Act) -> PressAnswer:
    """Answer with no, once."""
    return await _answered(act, yes=False)


async def _answered(act: Act, *, yes: bool) -> PressAnswer:
    approval_id = parse_id(act.form.get("approval", ""))
    done = await act.client.arun(_answering(approval_id, yes=yes, actor=act.client.actor))
    word = "approved" if yes else "refused"
    if done.woken:
        return PressAnswer(f"You have {word} it. The job goes on.")
    return PressAnswer(f"You have {word} it. The job gets the answer when it waits for it.")


def _answering(approval_id: str, *, yes: bool, actor: str | None) -> Procedure[Signalled]:
    """Answer, and wake whoever serves the job."""
    done = yield from ask(answer_by_id(approval_id, yes=yes, actor=actor))
    yield WakeUp(hints_of_queued(done.woken))
    return done


ACTIONS = (Action("/approvals/approve", approve), Action("/approvals/refuse", refuse))
SCREENS = (
    Screen(
        "approvals", "/approvals", "Approvals", approvals,
        section=Section.WORK, place=70, key="p", actions=ACTIONS,
    ),
)  # fmt: skip
