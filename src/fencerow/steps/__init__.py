"""Durable steps: what a job has done is remembered across its attempts; it sleeps and waits for signals without a slot.

    @app.job
    async def order(number: int, job: Job) -> str:
        paid = await job.step("charge", charge, number)
        await job.sleep(24 * 3600)
        answer = await job.wait_for("approved", timeout_s=7 * 24 * 3600)
        return await job.step("ship", ship, number, answer)

    app.client.signal(job_id, "approved", {"by": "ada"})

The guide: docs/guide/steps.md.
"""

from typing import TYPE_CHECKING

from fencerow.core.lazy import lazily

if TYPE_CHECKING:
    from fencerow.steps.approvals import Approval
    from fencerow.steps.asking import ApprovalAnswer
    from fencerow.steps.errors import (
        ApprovalOver,
        ApprovalUnknown,
        HistoryMismatch,
        SignalRefused,
        SignalTimeout,
        StepNotPossible,
        StepsSpent,
        StepTwice,
    )
    from fencerow.steps.model import JobWait, SentSignal, Step
    from fencerow.steps.signals import SignalAnswer
else:
    __getattr__ = lazily(
        __name__,
        {
            "Approval": "fencerow.steps.approvals",
            "ApprovalAnswer": "fencerow.steps.asking",
            "ApprovalOver": "fencerow.steps.errors",
            "ApprovalUnknown": "fencerow.steps.errors",
            "HistoryMismatch": "fencerow.steps.errors",
            "JobWait": "fencerow.steps.model",
            "SentSignal": "fencerow.steps.model",
            "SignalAnswer": "fencerow.steps.signals",
            "SignalRefused": "fencerow.steps.errors",
            "SignalTimeout": "fencerow.steps.errors",
            "Step": "fencerow.steps.model",
            "StepNotPossible": "fencerow.steps.errors",
            "StepTwice": "fencerow.steps.errors",
            "StepsSpent": "fencerow.steps.errors",
        },
    )

__all__ = [
    "Approval",
    "ApprovalAnswer",
    "ApprovalOver",
    "ApprovalUnknown",
    "HistoryMismatch",
    "JobWait",
    "SentSignal",
    "SignalAnswer",
    "SignalRefused",
    "SignalTimeout",
    "Step",
    "StepNotPossible",
    "StepTwice",
    "StepsSpent",
]
