"""The pages on which a person answers what a job asks: opened by an address that is its own key, and used once.

GET  /v1/approvals/{ticket}        what is asked, and two buttons; changes nothing, for mail scanners follow links
POST /v1/approvals/{ticket}/yes    answers, once; and .../no
"""

from __future__ import annotations

from html import escape
from typing import Final

from fencerow.core.model.person import Person, Via
from fencerow.core.wing import witnessed
from fencerow.errors import ApprovalOver, ApprovalUnknown
from fencerow.steps.approvals import answering, asked, ticket_of, too_late
from fencerow.steps.client import SignalVerbs
from fencerow.web.errors import TooLate, UnderMaintenance, Unready
from fencerow.web.gateway.problem import OF_DATABASE
from fencerow.web.gateway.route import Answer, Call, Route

NAME: Final = "an address"  # by which the answer came: nobody has logged in
HTML: Final = "text/html"
# Nothing is loaded and no script runs; the buttons lead here and nowhere else; no other page frames them.
HEADERS: Final = {
    "content-security-policy": "default-src 'none'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
    "x-frame-options": "DENY",
    "x-robots-tag": "noindex, nofollow",
}
PAGE: Final = """<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{title}</title></head>
<body>
<h1>{title}</h1>
{body}
</body>
</html>
"""


async def show(call: Call) -> Answer:
    """The page of an address: what is asked, and two buttons. Changes nothing."""
    ticket = call.params["ticket"]
    try:
        found = await call.app.engine.arun(asked(ticket_of(ticket)))
        if found.over is not None:
            raise too_late(found.over)
    except (ApprovalUnknown, ApprovalOver) as error:
        return _refused(error)
    lines = "<br>\n".join(escape(line) for line in found.asks.splitlines())
    forms = "\n".join(
        f'<form method="post" action="{call.base}/v1/approvals/{ticket}/{way}"><button>{text}</button></form>'
        for way, text in (("yes", "Yes"), ("no", "No"))
    )
    return _page(200, "You are asked", f"<p>{lines}</p>\n{forms}\n<p>Job {escape(found.job_name)}</p>")


async def say_yes(call: Call) -> Answer:
    """Answer with yes: once, for all addresses of this question."""
    return await _answered(call, yes=True)


async def say_no(call: Call) -> Answer:
    """Answer with no: once, for all addresses of this question."""
    return await _answered(call, yes=False)


async def _answered(call: Call, *, yes: bool) -> Answer:
    person = Person(NAME, Via.HTTP, call.origin.address, call.origin.request_id)
    client = SignalVerbs(witnessed(call.app.engine, person), actor=NAME)
    try:
        await client.arun(answering(ticket_of(call.params["ticket"]), yes=yes, actor=NAME))
    except (ApprovalUnknown, ApprovalOver) as error:
        return _refused(error)
    return _page(
        200, "Thank you", f"<p>Your answer is {'yes' if yes else 'no'}. You may close this page.</p>"
    )


def _refused(error: ApprovalUnknown | ApprovalOver) -> Answer:
    said = f"<p>{escape(error.why)}. Nothing was changed.</p>\n<p>{escape(error.fix)}. ({error.code})</p>"
    return _page(error.status, error.what.capitalize(), said)


def _page(status: int, title: str, body: str) -> Answer:
    content = PAGE.format(title=escape(title), body=body).encode()
    return Answer(status, headers=HEADERS, content=content, content_type=HTML)


REFUSALS = (Unready, UnderMaintenance, TooLate, *OF_DATABASE)
# Without a token: the address itself says who may answer.
ROUTES = (
    Route(
        "GET", "/v1/approvals/{ticket}", "showApproval", show, None, {200: None, 404: None, 410: None},
        refusals=REFUSALS, tag="approvals", content_type=HTML,
    ),
    Route(
        "POST", "/v1/approvals/{ticket}/yes", "approve", say_yes, None, {200: None, 404: None, 410: None},
        refusals=REFUSALS, tag="approvals", content_type=HTML,
    ),
    Route(
        "POST", "/v1/approvals/{ticket}/no", "disapprove", say_no, None, {200: None, 404: None, 410: None},
        refusals=REFUSALS, tag="approvals", content_type=HTML,
    ),
)  # fmt: skip
