"""I19 affinity is kept: a worker without the label takes a job only after its wait for the label was over.

A wait that is over is told by a fall-back of the job, and each is good for one attempt: after that the job waits again.
"""

from __future__ import annotations

from fencerow_proof.history.acts import Act
from fencerow_proof.history.lives import CLAIMS, Life, Unseen
from fencerow_proof.history.report import Report


def check_affinity(report: Report, life: Life, hidden: Unseen) -> None:
    """Each claim of a job with affinity: by a worker with the label, or after a fall-back that no claim has used."""
    told = next((act for act in life.acts if act.verb == "submit" and act.possible), None)
    # A submit that took the place of this one may have said another label.
    if told is None or told.affinity is None or life.possible("change"):
        return
    before: Act | None = None
    for claim in life.all(*CLAIMS):
        report.looked["I19"] += 1
        excuses = (
            each
            for each in (*life.possible("fall_back"), *([hidden.fall_back] if hidden.fall_back else []))
            if not report.history.before(claim, each)
            and (before is None or not report.history.before(each, before))
        )
        if told.affinity not in (claim.labels or ()) and next(excuses, None) is None:
            what = f"{claim.holder} does not carry the label {told.affinity}, and took it before its wait was over"
            report.add("I19", what, life.job, [told, *([before] if before else []), claim])
        before = claim
