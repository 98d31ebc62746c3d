"""`fencerow workers reclaim`: what a worker runs goes back now, though its lease is not over."""

from __future__ import annotations

import sys

import click

from fencerow.command import output
from fencerow.command.database import acting, working
from fencerow.command.options import asked, usual_options
from fencerow.command.times import span
from fencerow.core.model.state import State
from fencerow.core.model.worker import WorkerRecord
from fencerow.db.errors import exits
from fencerow.db.text import amount
from fencerow.operators.workers import ReclaimedWorker, Workers


@click.command()
@click.argument("which", metavar="WORKER")
@click.option("--yes", is_flag=True, help="Do not ask.")
@usual_options
@click.pass_context
def reclaim(context: click.Context, which: str, yes: bool) -> int:
    """End a worker's registration and take its jobs back now: its process is gone, or hangs and still renews.

    Its jobs are queued again, as after its death. If its process lives, it is told that it has lost them, and what it
    still writes is refused; until its handlers have ended, the next attempts may run beside them.
    """
    with working(asked(context)) as engine:
        workers = Workers(acting(engine, asked(context)))
        held = workers.inspect(which, jobs_max=10_000)
        if not _confirmed(held.worker, len(held.jobs), yes=yes):
            output.warn("nothing was changed")
            return exits.FAILED
        done = workers.reclaim(held.worker.id)
        engine.flush(1.0)
    if asked(context).json:
        jobs = [
            {"id": job.id, "state": job.state, "queue": job.queue, "attempt": job.attempt}
            for job in done.jobs
        ]
        output.say_json({"id": done.worker.id, "name": done.worker.name, "ended": done.ended, "jobs": jobs})
    else:
        _say(done)
    return exits.OK


def _confirmed(worker: WorkerRecord, count: int, *, yes: bool) -> bool:
    """Whether to go ahead: a person at a terminal is asked."""
    if yes or not sys.stdin.isatty():
        return True
    renewed_s = (worker.now_us - worker.renewed_at_us) / 1e6
    text = f"take {amount(count, 'job')} from {worker.name}, which renewed its lease {span(renewed_s)} ago?"
    return click.confirm(text, err=True)


def _say(done: ReclaimedWorker) -> None:
    ended = "its registration is over" if done.ended else "its registration was over already"
    output.say_text(
        f"{done.worker.name} ({done.worker.id}): {ended}; {amount(len(done.jobs), 'job')} taken back"
    )
    for job in done.jobs:
        how = "queued again" if job.state is State.QUEUED else job.state.value
        output.say(f"{job.id}  {how}, attempt {job.attempt} is over")
