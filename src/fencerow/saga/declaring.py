"""`app.saga`: which functions undo what a job has done, and the job that calls them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final
from weakref import WeakKeyDictionary

from fencerow.core.app.declare import DeclaredBase
from fencerow.core.app.submitter import Submitter
from fencerow.core.model.job import NewJob
from fencerow.core.worker.context import Job
from fencerow.db.engine import Engine
from fencerow.db.text import shown
from fencerow.saga.errors import InvalidSaga
from fencerow.saga.undoing import undoing

SUFFIX: Final = ".undo"
Undo = Callable[[Any], Any]
Declare = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Saga:
    """What undoes the steps of one job: functions by their names, and the job that calls them."""

    undos: dict[str, Undo]
    compensation: DeclaredBase[..., ..., Any, Any]
    submitter: Submitter

    def name_of(self, undo: object) -> str | None:
        """The name under which the saga lists this function; None: it does not."""
        return next((name for name, each in self.undos.items() if each is undo), None)

    def new_job(self, undo_id: str, queue: str) -> NewJob:
        """The compensation as it is stored, in this queue."""
        call = self.compensation.with_options({"queue": queue}).call()
        return self.submitter.as_stored_under([undo_id], [call])[0].job


# By the function of the handler, so that a child process, which finds a job and no app, knows them, too.
_SAGAS: WeakKeyDictionary[Callable[..., Any], Saga] = WeakKeyDictionary()


def saga_of(handler: Callable[..., Any]) -> Saga | None:
    """The saga of the job that this function runs."""
    return _SAGAS.get(handler)


def declare_saga(
    declare: Declare,
    submitter: Submitter,
    engine: Callable[[], Engine],
    work: object,
    undo: Sequence[Undo],
    options: dict[str, Any],
) -> Any:
    """See `App.saga`."""
    job = _fit(work)
    undos, packing = _by_name(job.name, undo), job.handler.packing

    async def compensate(job: Job) -> list[str]:
        return await undoing(job, undos, engine(), packing)

    compensation = declare(**{"name": f"{job.name}{SUFFIX}", "queue": job.queue, **options})(compensate)
    _SAGAS[job.handler.function] = Saga(undos, compensation, submitter)
    return compensation


def _fit(work: object) -> DeclaredBase[..., ..., Any, Any]:
    if not isinstance(work, DeclaredBase):
        raise InvalidSaga(
            f"app.saga got {shown(work)}", "a job that @app.job has declared is expected", "declare it first"
        )
    if not work.runs_here:
        raise InvalidSaga(
            f"app.saga got {work.name!r}, which runs elsewhere",
            "its steps are in another program",
            "declare the saga there",
        )
    if work.handler.batch_max is not None:
        raise InvalidSaga(
            f"app.saga got the batch handler {work.name!r}",
            "a batch has no steps, so nothing of it can be undone",
            "make it a plain job with steps",
        )
    if saga_of(work.handler.function) is not None:
        raise InvalidSaga(
            f"the job {work.name!r} has a saga already",
            "a job has one saga, and one compensation undoes all of its steps",
            "list all functions in one app.saga(...)",
        )
    return work


def _by_name(job: str, undo: object) -> dict[str, Undo]:
    if isinstance(undo, str) or not isinstance(undo, Sequence) or not undo:
        raise InvalidSaga(
            f"undo= of app.saga({job}) is {shown(undo)}",
            "a list of at least one function is expected",
            "write undo=[refund], with each function that a step names",
        )
    found: dict[str, Undo] = {}
    for each in undo:
        name = getattr(each, "__name__", "")
        if not callable(each) or not name.isidentifier():
            raise InvalidSaga(
                f"app.saga({job}) lists {shown(each)}",
                "it is stored by its name, so a function with a name of its own is expected: no lambda, no partial",
                "write def",
            )
        if not _takes_one(each):
            raise InvalidSaga(
                f"{name} in app.saga({job}) does not take one argument",
                "it is called with the result of the step",
                "let the step return what is needed to undo it",
            )
        if name in found:
            raise InvalidSaga(
                f"app.saga({job}) lists two functions {name!r}",
                "it is stored by its name, so each needs one of its own",
                "give one another name",
            )
        found[name] = each
    return found


def _takes_one(function: Undo) -> bool:
    try:
        inspect.signature(function).bind(object())
    except (TypeError, ValueError):
        return False
    return True
