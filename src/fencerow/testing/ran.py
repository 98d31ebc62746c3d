"""What a drain ran: each attempt with what became of it, as it is stored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from fencerow.app import App
from fencerow.core.model.describe import ErrorRecord
from fencerow.core.model.job import Happening, JobRecord
from fencerow.core.store import store
from fencerow.core.telemetry import Fact
from fencerow.db.text import kind_and_text
from fencerow.operators import looking
from fencerow.testing.errors import JobsDidNotSucceed

UNFIT = frozenset({Fact.FAILED, Fact.RETRIED, Fact.CRASHED, Fact.LEASE_LOST})


@dataclass(frozen=True, slots=True)
class Ran:
    """One attempt that `drain` ran, and what became of it.

    `outcome` is "succeeded", "failed", "retried", "snoozed", "suspended", "stopped", "released", "crashed" or
    "lease_lost".
    `error` is there for the failed and retried, `result` for the succeeded (unless the job was ephemeral),
    `delay_s` for those that come back.
    """

    id: str
    name: str
    queue: str
    attempt: int
    outcome: str
    delay_s: float | None = None
    result: Any = None
    error: ErrorRecord | None = None

    def __str__(self) -> str:
        why = f": {kind_and_text(self.error.type, self.error.message)}" if self.error else ""
        later = f", again in {self.delay_s:g} s" if self.delay_s is not None else ""
        return f"{self.name} {self.id}, attempt {self.attempt}: {self.outcome}{later}{why}"


async def told(app: App, ends: Sequence[tuple[str, Mapping[str, Any]]]) -> list[Ran]:
    """The attempts with their results and errors, as they are stored."""
    ids = sorted({facts["job_id"] for _, facts in ends})
    records = await app.engine.arun(store.read(ids)) if ids else {}
    again = {facts["job_id"] for name, facts in ends if name in (Fact.RETRIED, Fact.CRASHED)}
    pasts = {job_id: await app.engine.arun(looking.events(job_id)) for job_id in sorted(again)}
    packed = {job_id for job_id, each in records.items() if each.result is not None and app.client.packs}
    results = {job_id: await app.client.handle(job_id).aresult(0) for job_id in sorted(packed)}
    records |= {
        job_id: msgspec.structs.replace(records[job_id], result=result) for job_id, result in results.items()
    }
    return [_ran(name, facts, records.get(facts["job_id"]), pasts) for name, facts in ends]


def _ran(
    name: str, facts: Mapping[str, Any], record: JobRecord | None, pasts: Mapping[str, Sequence[Happening]]
) -> Ran:
    job_id, attempt = facts["job_id"], facts["attempt"]
    is_last = record is not None and record.attempt == attempt
    error = record.error if record is not None and is_last and name == Fact.FAILED else None
    for happening in pasts.get(job_id, ()):
        if happening.attempt == attempt and error is None and isinstance(happening.detail, dict):
            error = happening.detail.get("detail")
    return Ran(
        id=job_id,
        name=facts["job"],
        queue=facts["queue"],
        attempt=attempt,
        outcome=name,
        delay_s=facts.get("delay_s"),
        result=record.result if record is not None and is_last and name == Fact.SUCCEEDED else None,
        error=_error(error),
    )


def _error(stored: Any) -> ErrorRecord | None:
    if not isinstance(stored, dict) or "type" not in stored:
        return None
    fields = ("type", "message", "traceback", "code")
    return ErrorRecord(*(str(stored.get(name, "")) for name in fields))


def check_all(ran: Sequence[Ran], undelivered: Sequence[str]) -> None:
    """Make sure that all attempts and deliveries of a drain went well.

    Raises:
        JobsDidNotSucceed: one did not.
    """
    unfit = [each for each in ran if each.outcome in UNFIT]
    if not unfit and not undelivered:
        return
    texts = [str(each) for each in unfit] + [f"event {each}" for each in undelivered]
    traces = [each.error.traceback for each in unfit if each.error and each.error.traceback]
    counted = f"{len(unfit)} of {len(ran)} attempts did not succeed"
    raise JobsDidNotSucceed(
        f"{counted}, nor {len(undelivered)} deliveries of events" if undelivered else counted,
        "\n".join(["they are:", *(f"  {each}" for each in texts[:20]), *traces[:1]]),
        "leave check=True out if the test expects a failure",
    )
