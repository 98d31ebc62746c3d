"""What type checkers know of declarations of batches. Who declares none never loads it.

What a declaration does is in `batches`, which knows no option of another wing.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, Unpack, overload

from fencerow.batches.declare import BATCH_MAX, DeclareBatchBase
from fencerow.batches.item import BatchItem
from fencerow.core.model.seconds import Seconds
from fencerow.declaring import DeclaredJob

if TYPE_CHECKING:
    from fencerow.options import GivenOptions

R = TypeVar("R")  # what the job results in
V = TypeVar("V")  # the value of an item of a batch


class DeclareBatch(DeclareBatchBase):
    """The decorator behind `@app.batch_job` and `@app.batch_job(...)`."""

    @overload
    def __call__(
        self, function: Callable[[Sequence[BatchItem[V, R]]], Coroutine[Any, Any, None]], /
    ) -> DeclaredJob[[Sequence[BatchItem[V, R]]], [V], R, Coroutine[Any, Any, None]]: ...

    @overload
    def __call__(
        self, function: Callable[[Sequence[BatchItem[V, R]]], None], /
    ) -> DeclaredJob[[Sequence[BatchItem[V, R]]], [V], R, None]: ...

    @overload
    def __call__(
        self, /, *, batch_max: int = BATCH_MAX, batch_wait_s: Seconds = 0.0, **given: Unpack[GivenOptions]
    ) -> DeclareBatch: ...

    def __call__(
        self,
        function: Callable[..., Any] | None = None,
        /,
        *,
        batch_max: int = BATCH_MAX,
        batch_wait_s: Seconds = 0.0,
        **given: Unpack[GivenOptions],
    ) -> Any:
        """Declare a job whose handler gets up to `batch_max` of its queued jobs in one call.

            @app.batch_job(batch_max=100)
            async def send(items: Sequence[BatchItem[Mail, str]]) -> None: ...

            send.submit(Mail(...))     # each job by itself, with the options of any job

        Each `BatchItem` gets its outcome from the handler. `timeout_s` bounds the call. With `batch_wait_s` a call
        that is not full waits so long (60 seconds at most) for more jobs, counted from the first of them, and takes
        no slot meanwhile; the wait is no part of `timeout_s`, and no attempt is spent if it is broken off. A batch
        has no `job.transaction()`, and its middleware is declared with `App.on_batch`. The other options are those of
        `App.job`.

        Raises:
            DeclarationError: the handler's parameter has another form, `batch_max` or `batch_wait_s` is out of
                range, or see `App.job`.
        """
        return self.declared(function, batch_max=batch_max, batch_wait_s=batch_wait_s, **given)
