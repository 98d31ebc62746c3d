"""What is read of the job that runs again. Its database is read, and nothing else."""

from __future__ import annotations

import msgspec

from fencerow.core.app import JobsApp
from fencerow.core.app.unknown import unknown_job
from fencerow.core.client.refs import reading
from fencerow.core.model.codec import args_version_of
from fencerow.core.model.handler import Handler
from fencerow.core.model.job import JobRecord
from fencerow.db.run import Procedure, ask
from fencerow.operators.prefixes import job_meant, parse_prefix
from fencerow.steps.memory import steps_of
from fencerow.steps.model import Kind, SentSignal, Step
from fencerow.steps.signals import signals_of
from fencerow_proof.errors import RerunNotPossible

NAMES_SHOWN = 20


class StoredJob(msgspec.Struct, frozen=True):
    """A job as it stands, what it remembers, and the signals that were sent to it."""

    record: JobRecord
    steps: list[Step]
    signals: list[SentSignal]

    @property
    def args(self) -> bytes:
        """Its arguments as they are stored: a signature is of these bytes."""
        return msgspec.json.encode(self.record.args)

    @property
    def options(self) -> bytes:
        """Its options as they are stored."""
        return msgspec.json.encode(self.record.options)


def reading_stored(job: str) -> Procedure[StoredJob]:
    """The job that is meant. Changes nothing.

    Raises:
        JobNotFound: there is no such job; retention may have removed it. AmbiguousId: there are several.
    """
    record = yield from reading((yield from job_meant(parse_prefix(job))))
    return StoredJob(record, (yield from ask(steps_of(record.id))), (yield from ask(signals_of(record.id))))


def handler_of(app: JobsApp, stored: StoredJob) -> Handler:
    """The handler by which it can run again. Its arguments are read once, to see that they can be.

    Raises:
        UnknownJob: the application declares none of that name. RerunNotPossible: it does not run by itself, or here.
        SealKeyUnknown, PayloadAltered, StoreUnavailable, PayloadMissing: its arguments cannot be read here.
        ArgumentsTooNew, MalformedPayload: they do not fit this code.
    """
    record = stored.record
    declared = app.jobs.get(record.name)
    if declared is None:
        raise unknown_job(record.name, list(app.jobs))
    if not declared.runs_here or declared.handler.batch_max is not None:
        raise RerunNotPossible(
            f"job {record.id} ({record.name}) has no handler for one job here",
            "its code is in another program"
            if not declared.runs_here
            else "it runs in a batch, with others that are not known any more",
            "use the program that has its code"
            if not declared.runs_here
            else "call the batch handler from a test",
        )
    declared.handler.called_with(record.id, stored.args, args_version_of(stored.options))
    return declared.handler


def kept(stored: StoredJob, begin: str | None) -> list[Step]:
    """What it still remembers when it runs again: all, or what stands before the step `begin`.

    What it waited for it remembers in any case, and which way it took at `job.patched`: nobody sleeps again.

    Raises:
        RerunNotPossible: it remembers no such step.
    """
    if begin is None:
        return stored.steps
    place = next((each.seq for each in stored.steps if each.name == begin and each.kind is Kind.STEP), None)
    if place is None:
        names = [each.name for each in stored.steps if each.kind is Kind.STEP]
        raise RerunNotPossible(
            f"job {stored.record.id} remembers no step {ascii(begin)[:80]}",
            f"it remembers: {', '.join(names[:NAMES_SHOWN]) or 'no step'}",
            "name one of these, or leave out --from",
        )
    return [each for each in stored.steps if each.seq < place or each.kind is not Kind.STEP]
