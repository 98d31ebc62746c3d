"""What a person is asked by an address of its own, which answers once: yes or no, as a signal of the job.

The secret stands in the address alone; the database keeps its digest. Whoever looks at an address changes nothing, for
mail scanners follow links.
"""

from __future__ import annotations

import base64
import hashlib
import secrets
import uuid
from typing import Final

import msgspec

from fencerow.core.client.refs import Ref, resolving
from fencerow.core.errors import InvalidInput
from fencerow.core.model.control import check_delay
from fencerow.core.model.ids import new_id
from fencerow.core.model.job import At
from fencerow.core.model.seconds import Seconds
from fencerow.core.store.attempts import read_fences
from fencerow.core.store.hints import hints_of_queued
from fencerow.core.store.moves import CANCEL_PATIENCE_S, not_found
from fencerow.core.store.suspending import lock_waiters
from fencerow.db.run import Procedure, Steps, WakeUp, as_int, ask, execute, operation
from fencerow.db.text import check_text, shown
from fencerow.steps.errors import ApprovalOver, ApprovalUnknown, SignalRefused
from fencerow.steps.model import SIGNAL_LENGTH_MAX
from fencerow.steps.signals import Signalled, signal

APPROVALS_MAX: Final = 100  # of a job
ASKS_LENGTH_MAX: Final = 2_000
BY_LENGTH_MAX: Final = 200
SECRET_BYTES: Final = 32
PATH: Final = "/v1/approvals/"  # below the address of a gateway


class Approval(msgspec.Struct, frozen=True, kw_only=True):
    """What a person is asked. `address`: whoever has it may answer, once, until `expires_at_us`.

    It is told here and never again: give it to the person who shall answer, and to no log.
    """

    id: str
    job_id: str
    address: str
    expires_at_us: int

    expires_at = At("expires_at_us")

    def __repr__(self) -> str:
        return f"<Approval {self.id} of job {self.job_id}>"


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked under an address. `over`: why it cannot be answered any more, in words; None: it can."""

    id: str
    job_id: str
    job_name: str
    signal: str
    asks: str
    expires_at_us: int
    over: str | None

    expires_at = At("expires_at_us")


class Ticket(msgspec.Struct, frozen=True):
    """What stands in an address: which approval, and the digest of its secret."""

    id: str
    digest: str


def ticket_of(text: str) -> Ticket:
    """What an address says.

    Raises:
        ApprovalUnknown: it is none.
    """
    try:
        raw = base64.b64decode(text + "=" * (-len(text) % 4), b"-_", validate=True)
    except ValueError:
        raise unknown() from None
    if len(raw) != 16 + SECRET_BYTES:
        raise unknown()
    return Ticket(str(uuid.UUID(bytes=raw[:16])), hashlib.sha256(raw[16:]).hexdigest())


def unknown() -> ApprovalUnknown:
    """The answer to an address that was not made here, word for word that to one that was altered."""
    return ApprovalUnknown(
        "nothing is asked under this address",
        "it was cut or altered, or what was asked is gone",
        "take all of it from the message that brought it",
    )


@operation(alone=True, repeatable=True)
def make_approval(
    approval_id: str, job_id: str, name: str, asks: str, digest: str, *, expires_s: float, actor: str | None
) -> Steps[int | None]:
    """Keep what is asked; returns when it expires; None: the job does not live, or is asked too much."""
    rows = yield from execute(
        "make_approval",
        approval_id=approval_id,
        id=job_id,
        signal=name,
        asks=asks,
        digest=digest,
        actor=actor,
        expires_s=expires_s,
        most=APPROVALS_MAX,
    )
    return as_int(rows[0][0]) if rows else None


@operation(alone=True, repeatable=True, writes="")
def asked(ticket: Ticket) -> Steps[Asked]:
    """What is asked under an address. Changes nothing.

    Raises:
        ApprovalUnknown: there is no such address.
    """
    rows = yield from execute("approval", approval_id=ticket.id, digest=ticket.digest)
    if not rows:
        raise unknown()
    job_id, name, asks, expires_at_us, answer, expired, answered, job_name, withdrawn = rows[0]
    over = None
    if withdrawn:
        over = "its job waits for it no longer"
    elif answered:
        said = "" if answer is None else f" with {'yes' if answer else 'no'}"
        over = f"it was answered before{said}"
    elif expired:
        over = "it has expired"
    elif job_name is None:
        over = "its job has ended"
    return Asked(
        id=ticket.id,
        job_id=str(job_id),
        job_name=str(job_name or ""),
        signal=str(name),
        asks=str(asks),
        expires_at_us=as_int(expires_at_us),
        over=over,
    )


@operation(patience_s=CANCEL_PATIENCE_S)
def answer_approval(
    ticket: Ticket, *, yes: bool, actor: str | None, by: str | None = None, comment: str | None = None
) -> Steps[Signalled]:
    """Answer, once: the mark "used" and the signal to the job are one commit. Locks the job's row.

    `by`: who answers, as they say themselves.

    Raises:
        ApprovalUnknown: there is no such address. ApprovalOver: it was used, has expired, or its job has ended. Nothing
            is changed. Busy: a transaction of somebody's locks the job.
    """
    found = yield from asked(ticket).steps()
    yield from lock_waiters([found.job_id])
    if not (yield from execute("answer_approval", approval_id=ticket.id, digest=ticket.digest, answer=yes)):
        late = yield from asked(ticket).steps()
        raise too_late("somebody answers it just now" if late.over is None else late.over)
    said = {name: text for name, text in (("by", by), ("comment", comment)) if text is not None}
    data = msgspec.json.encode({"yes": yes, "approval": ticket.id, **said}).decode()
    try:
        return (yield from signal(ticket.id, found.job_id, found.signal, data, actor=actor).steps())
    except SignalRefused as error:
        raise too_late(f"its job takes no answer: {error.why}") from None


def too_late(why: str) -> ApprovalOver:
    """The answer to whoever comes too late."""
    return ApprovalOver("this can no longer be answered", why, "ask whoever sent it for another address")


def approving(
    ref: Ref, name: str, asks: str, base_url: str, expires_s: Seconds, actor: str | None
) -> Procedure[Approval]:
    """Make an address by which a person answers."""
    check_text(name, "the name of a signal", SIGNAL_LENGTH_MAX)
    check_text(asks, "what is asked", ASKS_LENGTH_MAX, lines=True)
    until_s = check_delay(expires_s, "expires_s", zero=False)
    if not str(base_url).startswith(("https://", "http://")):
        raise InvalidInput(
            f"base_url is {shown(base_url)}",
            "the address of a gateway is expected",
            "https://jobs.example.com",
        )
    job_id = yield from resolving(ref)
    own, secret = new_id(), secrets.token_bytes(SECRET_BYTES)
    digest = hashlib.sha256(secret).hexdigest()
    expires = yield from ask(make_approval(own, job_id, name, asks, digest, expires_s=until_s, actor=actor))
    if expires is None:
        raise (yield from _refused(job_id))
    text = base64.urlsafe_b64encode(uuid.UUID(own).bytes + secret).decode().rstrip("=")
    return Approval(
        id=own, job_id=job_id, address=f"{base_url.rstrip('/')}{PATH}{text}", expires_at_us=expires
    )


def answering(
    ticket: Ticket, *, yes: bool, actor: str | None, by: str | None = None, comment: str | None = None
) -> Procedure[None]:
    """Answer, and wake whoever serves the job.

    Raises:
        InvalidInput: the name or the comment cannot be kept. And as `answer_approval`. Nothing is changed.
    """
    if by is not None:
        check_text(by, "who answers", BY_LENGTH_MAX)
    if comment is not None:
        check_text(comment, "the comment", ASKS_LENGTH_MAX, lines=True)
    done = yield from ask(answer_approval(ticket, yes=yes, actor=actor, by=by, comment=comment))
    yield WakeUp(hints_of_queued(done.woken))


def _refused(job_id: str) -> Procedure[Exception]:
    fence = (yield from ask(read_fences([job_id]))).get(job_id)
    if fence is None:
        return not_found(job_id)
    return SignalRefused(
        f"nothing more can be asked for job {job_id}",
        f"it is {fence.state}, and up to {APPROVALS_MAX} things are asked for a job that has not ended",
        "ask before the job ends, and once for each wait",
    )
