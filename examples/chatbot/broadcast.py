"""One message to many recipients: batches are jobs, and each recipient is a row of a ledger with states of its own.

A job that runs again goes on where the ledger says, with whoever is left, in whatever worker that is.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from examples.chatbot.base import app, connected, execute
from examples.chatbot.messages import Message, deliver
from examples.chatbot.web import Refused
from fencerow import Backoff, Job
from fencerow.guards.transitions import Lease, Move, Transitions

BATCH_MAX = 50
CLAIMS_MAX = 20  # of one recipient: a message that takes its worker along must not do so for ever
LEASE_S = 5.0  # of one recipient: longer than one message takes; who sleeps through it has lost the row
UNDELIVERABLE = (400, 404, 410, 422)  # the channel will not change its mind

ledger = Transitions(
    app,
    table="recipients",
    column="state",
    states=["pending", "sending", "sent", "failed"],
    moves=[
        Move(
            "send",
            "pending",
            "sending",
            where="broadcast = :broadcast AND batch = :batch",
            lease=Lease(
                lease_s=LEASE_S,
                fence="claims",
                since="claimed_at",
                attempts_max=CLAIMS_MAX,
                when_spent="give_up",
            ),
        ),
        Move("confirm", "sending", "sent", stamps="ended_at", sets="message"),
        Move("refuse", "sending", "failed", stamps="ended_at", sets="error"),
        Move("put_back", "sending", "pending"),
        Move("give_up", ["pending", "sending"], "failed", stamps="ended_at", by_anyone=True),
    ],
    order="id",
)
app.add_chore(ledger.reaper())


def start(broadcast: str, workspace: str, text: str, addresses: Iterable[str]) -> int:
    """Write the ledger and submit its batches in one transaction; returns how many batches. May be repeated."""
    everybody = list(dict.fromkeys(addresses))
    batches = [everybody[first : first + BATCH_MAX] for first in range(0, len(everybody), BATCH_MAX)]
    with connected() as db:
        execute(
            db,
            "INSERT INTO broadcasts (id, workspace, text) VALUES (?, ?, ?) ON CONFLICT (id) DO NOTHING",
            (broadcast, workspace, text),
        )
        for batch, members in enumerate(batches):
            for address in members:
                execute(
                    db,
                    "INSERT INTO recipients (id, broadcast, batch, address) VALUES (?, ?, ?, ?) "
                    "ON CONFLICT (id) DO NOTHING",
                    (f"{broadcast}/{address}", broadcast, batch, address),
                )
            send_batch.using(key=f"{broadcast}/{batch}", connection=db).submit(broadcast, workspace, batch)
    return len(batches)


@app.job(
    queue="broadcasts",
    limits=lambda workspace, **_: f"channel/{workspace}",
    attempts_max=10,
    backoff=Backoff(base_s=1),
    timeout_s=600,
)
def send_batch(job: Job, broadcast: str, workspace: str, batch: int) -> dict[str, int]:
    """Send to everybody in the batch who was not sent to. Its workspace's pace says when it starts."""
    text = _text(broadcast)
    while taken := ledger.take("send", params={"broadcast": broadcast, "batch": batch}):
        job.raise_if_cancelled()
        _send(taken[0], workspace, text)
    standing = counts(broadcast, batch)
    if standing.get("pending") or standing.get("sending"):
        job.snooze(LEASE_S, "another run of this batch is sending, or has died of it")
    return standing


def counts(broadcast: str, batch: int | None = None) -> dict[str, int]:
    """How many recipients are in which state."""
    with connected() as db:
        rows = execute(
            db,
            "SELECT state, count(*) FROM recipients WHERE broadcast = ? AND batch = coalesce(?, batch) "
            "GROUP BY state",
            (broadcast, batch),
        )
    return dict(rows)


def _send(recipient: dict[str, Any], workspace: str, text: str) -> None:
    id_, fence = recipient["id"], recipient["claims"]
    try:
        message = deliver(Message(id_, workspace, recipient["address"], "out", text))
    except Refused as error:
        if error.status_code in UNDELIVERABLE:
            ledger.move(
                "refuse", id_, fence=fence, values={"error": f"the channel answered {error.status_code}"}
            )
            return
        ledger.move("put_back", id_, fence=fence)
        raise  # the job tries again later, with its backoff
    ledger.move("confirm", id_, fence=fence, values={"message": message})


def _text(broadcast: str) -> str:
    with connected() as db:
        (found,) = execute(db, "SELECT text FROM broadcasts WHERE id = ?", (broadcast,))
    return str(found[0])
