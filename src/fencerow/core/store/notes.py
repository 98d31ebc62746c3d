"""What a running attempt writes about itself, under its fence."""

from __future__ import annotations

from fencerow.db.run import Steps, execute, operation


@operation(alone=True, repeatable=True)
def progress(job_id: str, *, holder: str, attempt: int, percent: float, note: str | None) -> Steps[bool]:
    """Say how far the attempt is; false means that it no longer holds the job."""
    return bool(
        (
            yield from execute(
                "progress", id=job_id, holder=holder, attempt=attempt, percent=percent, note=note
            )
        )
    )


@operation(alone=True)
def log(job_id: str, *, holder: str, attempt: int, level: str, message: str) -> Steps[bool]:
    """Keep a line with the job; false means that the attempt no longer holds it."""
    rows = yield from execute("log", id=job_id, holder=holder, attempt=attempt, level=level, message=message)
    return bool(rows)


@operation(alone=True, repeatable=True, writes="")
def check_fence(job_id: str, *, holder: str, attempt: int) -> Steps[bool | None]:
    """Whether a cancel was asked of the attempt; None means that it no longer holds the job."""
    rows = yield from execute("check_fence", id=job_id, holder=holder, attempt=attempt)
    return bool(rows[0][0]) if rows else None


@operation(repeatable=True)
def bound_idle(job_id: str) -> Steps[None]:
    """As the first step of a job's own transaction: it lasts no longer than the job may, should its worker freeze."""
    yield from execute("bound_idle", id=job_id)


@operation(repeatable=True)
def hold_fence(job_id: str, *, holder: str, attempt: int) -> Steps[bool | None]:
    """`check_fence` as the first step of a transaction: no newer attempt begins before it ends."""
    rows = yield from execute("hold_fence", id=job_id, holder=holder, attempt=attempt)
    return bool(rows[0][0]) if rows else None
