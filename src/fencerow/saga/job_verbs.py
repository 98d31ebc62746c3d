"""What `Job` is given for sagas: `undo=` of its steps."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeVar, TypeVarTuple, overload

from fencerow.core.answering import answer
from fencerow.core.model.backoff import Backoff
from fencerow.core.model.ids import new_id
from fencerow.db.run import Steps
from fencerow.db.text import shown
from fencerow.steps.job_verbs import STEP_BACKOFF, StepVerbs

if TYPE_CHECKING:
    from fencerow.steps.memory import Beside, Remembering

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

UNDO = """
            UndoNotPossible: `undo` is not among the functions of the job's saga. Nothing was done.

        `undo`: a function of `app.saga(job, undo=[...])`, called with this result if the job ends without success.
        """


@answer
class SagaVerbs(StepVerbs):
    """A running job that remembers, and whose steps can be undone."""

    __slots__ = ()

    @overload
    def step(
        self,
        name: str,
        fn: Callable[[*Ts], Awaitable[T]],
        *args: *Ts,
        retries: int = 0,
        backoff: Backoff = STEP_BACKOFF,
        undo: Callable[[T], Any] | None = None,
    ) -> Awaitable[T]: ...

    @overload
    def step(
        self,
        name: str,
        fn: Callable[[*Ts], T],
        *args: *Ts,
        retries: int = 0,
        backoff: Backoff = STEP_BACKOFF,
        undo: Callable[[T], Any] | None = None,
    ) -> T: ...

    def step(
        self,
        name: str,
        fn: Callable[[*Ts], Any],
        *args: *Ts,
        retries: int = 0,
        backoff: Backoff = STEP_BACKOFF,
        undo: Callable[[Any], Any] | None = None,
    ) -> Any:
        beside = None if undo is None else self._undone_by(name, undo)
        return self._step(name, fn, args, retries, backoff, beside)

    step.__doc__ = (StepVerbs.step.__doc__ or "").rstrip() + UNDO

    @overload
    def step_in_transaction(
        self,
        name: str,
        fn: Callable[[Any, *Ts], Awaitable[T]],
        *args: *Ts,
        undo: Callable[[T], Any] | None = None,
    ) -> Awaitable[T]: ...

    @overload
    def step_in_transaction(
        self, name: str, fn: Callable[[Any, *Ts], T], *args: *Ts, undo: Callable[[T], Any] | None = None
    ) -> T: ...

    def step_in_transaction(
        self,
        name: str,
        fn: Callable[[Any, *Ts], Any],
        *args: *Ts,
        undo: Callable[[Any], Any] | None = None,
    ) -> Any:
        beside = None if undo is None else self._undone_by(name, undo)
        return self._step_in_transaction(name, fn, args, beside)

    step_in_transaction.__doc__ = (StepVerbs.step_in_transaction.__doc__ or "").rstrip() + UNDO

    def _undone_by(self, name: str, undo: Callable[[Any], Any]) -> Beside:
        """What is written beside the memory of a step.

        Raises:
            UndoNotPossible: the function is none that can undo.
        """
        from fencerow.saga.declaring import saga_of  # whose steps stay done never loads it
        from fencerow.saga.storing import note_undo

        saga = saga_of(self._attempt.handler.function)
        known = None if saga is None else saga.name_of(undo)
        if saga is None or known is None:
            from fencerow.saga.errors import UndoNotPossible

            raise UndoNotPossible(
                f"the step {shown(name)} of {self.name!r} has undo={shown(undo)}",
                "a function is found again by the saga of its job, whatever process undoes it",
                f"list it: app.saga({self.name}, undo=[...])",
            )
        listed, compensation = known, saga.new_job(new_id(), self.queue)

        def beside(step: Remembering) -> Steps[None]:
            return note_undo(
                self.id, name=step.name, seq=step.seq, undo=listed, result=step.result, job=compensation
            )

        return beside
