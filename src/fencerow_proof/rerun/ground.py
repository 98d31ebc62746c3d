"""The scratch database on which a stored job runs again, with what it remembers, and the run itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

import msgspec

from fencerow.core.client.base import ClientBase
from fencerow.core.client.refs import reading
from fencerow.core.model.job import Claimed, JobRecord, NewJob, Template
from fencerow.core.store import store
from fencerow.db.engine import Engine
from fencerow.steps import memory
from fencerow.steps.memory import Fencing, Remembering, steps_of
from fencerow.steps.model import Step
from fencerow.steps.signals import signal
from fencerow_proof.check.desk import HOLDERS, Desk
from fencerow_proof.check.director import Director
from fencerow_proof.check.kinds import Kind
from fencerow_proof.check.opening import preset_of, scratch_of
from fencerow_proof.check.options import Options
from fencerow_proof.check.process import Process
from fencerow_proof.check.scratch import Scratch, private_folder, remove_folder
from fencerow_proof.check.state import Comparison, Difference
from fencerow_proof.check.wire import Loaded
from fencerow_proof.rerun.stored import StoredJob

REFUSED = frozenset((Kind.FILE, Kind.PROCESS))  # as sockets are, unless they are allowed: this job was real
ACTOR = "rerun"


@dataclass(frozen=True)
class Ran:
    """One more run: the process that it was, and what it left on the scratch database."""

    process: Process
    record: JobRecord
    steps: list[Step]
    written: list[Difference]
    ours: tuple[str, ...]  # what the names of our own tables begin with


def run_again(
    stored: StoredJob, kept: Sequence[Step], options: Options, url: str | None, say: Callable[[str], None]
) -> Ran:
    """Run the job once, on a scratch database that begins with these steps. `url`: of the real one, for an application
    that names none; it is never opened here.

    Raises:
        CheckNeedsMore, ScratchNotEmpty: there is no scratch database, or its setup fails. CheckStuck: the run does not
            come to its end.
    """
    folder = private_folder()
    with ExitStack() as stack:
        stack.callback(remove_folder, folder)
        preset = preset_of(options) if url is None else {"FENCEROW_URL": url}
        director = Director(folder, options, preset)
        stack.callback(director.close)
        say("importing the application")
        loaded = director.load()
        scratch = scratch_of(options, loaded, folder, stack, say)
        director.prepare(scratch, [])
        claimed = _claimed(scratch.engine(), loaded, stored, kept)
        scratch.keep()
        scratch.fresh()
        return _run(stored, director, scratch, loaded, claimed)


def _run(stored: StoredJob, director: Director, scratch: Scratch, loaded: Loaded, claimed: Claimed) -> Ran:
    job_id = stored.record.id
    before = scratch.reader().state([job_id])
    process = director.start(scratch, claimed, HOLDERS[0])
    director.run(scratch, process, refused=REFUSED)
    process.kill()
    if process.backends:
        scratch.settle(process.backends)
    engine = scratch.engine()
    if process.ended is not None and process.ended.outcome == "Succeeded":
        Desk(loaded).acknowledge(engine, claimed, HOLDERS[0], process.ended)
    written = Comparison(()).differences(before, scratch.reader().state([job_id]))
    record = ClientBase(engine).run(reading(job_id))
    prefix = loaded.table_prefix if loaded.dialect == "sqlite" else f"{loaded.schema}."
    return Ran(process, record, engine.run(steps_of(job_id)), written, (prefix,))


def _claimed(engine: Engine, loaded: Loaded, stored: StoredJob, kept: Sequence[Step]) -> Claimed:
    """The job on the scratch database, claimed by a worker that is none, with what it is to remember."""
    record = stored.record
    desk = Desk(msgspec.structs.replace(loaded, queue=record.queue))
    desk.open(engine)
    engine.run(store.submit([_as_new(stored)]))
    (claimed,) = desk.claim(engine, HOLDERS[0], 1)
    fencing = Fencing(record.id, HOLDERS[0], claimed.attempt)
    for each in kept:
        engine.run(memory.remember(fencing, _remembering(each)))
    taken = {each.name for each in kept}
    for sent in stored.signals:
        if sent.taken_as not in taken:
            data = msgspec.json.encode(sent.data).decode()
            engine.run(signal(sent.id, record.id, sent.name, data, actor=ACTOR))
    return claimed


def _as_new(stored: StoredJob) -> NewJob:
    """The same job without what lets it wait for others."""
    record, args = stored.record, stored.args.decode()
    template = Template(
        queue=record.queue,
        name=record.name,
        priority=record.priority,
        attempts_max=record.attempts_max,
        crashes_max=record.crashes_max,
        snoozes_max=record.snoozes_max,
        timeout_s=record.timeout_s,
        options=None if record.options is None else stored.options.decode(),
        tags=_json(record.tags),
        metadata=_json(record.metadata),
        headers=_json(record.headers),
    )
    return NewJob(record.id, args, len(stored.args), template)


def _json(value: object) -> str | None:
    return None if value is None else msgspec.json.encode(value).decode()


def _remembering(step: Step) -> Remembering:
    return Remembering(
        name=step.name,
        kind=step.kind,
        seq=step.seq,
        beside=step.beside,
        result=step.result,
        took_s=step.took_s,
    )
