"""What type checkers know of declarations: a job has the types of its function, and the options of all wings.

What a declaration does is in `core/app`, which knows no option of a wing.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, TypeVar, Unpack, overload

from fencerow.core.app.declare import DeclareBase, DeclaredBase
from fencerow.core.app.submitter import Submittable

if TYPE_CHECKING:
    from fencerow.job import Job
    from fencerow.options import GivenOptions, GivenSubmitOptions

C = ParamSpec("C")  # the parameters of the function itself
P = ParamSpec("P")  # those of a submit: without `job`
R = TypeVar("R")  # what the job results in
X = TypeVar("X")  # what calling the function returns: R, or a coroutine of it


class DeclaredJob(DeclaredBase[C, P, R, X], Generic[C, P, R, X]):
    """A declared job: submit it to run it durably, or call it like the function it was made from.

    The call runs it here and now, without a database: for unit tests.
    """

    def using(self, **given: Unpack[GivenSubmitOptions]) -> Submittable[P, R]:
        """The same job with options (`GivenSubmitOptions`) for the submits made through what is returned.

        `key` is for idempotency and nothing else. One key (in `scope`, by default the job's name) is one job
        until `key_lifetime_s` after its end; a repeated submit gets that job's handle, with `replay` set.
        `delay_s` or `run_at` (an aware datetime) says when the job is due. `id` is for repeating a submit
        whose outcome was lost. An `ephemeral` job leaves no row when it succeeds, so only those who wait for
        the job already get its result. `connection` submits inside your own transaction: the job is accepted
        when that commits. A connection in autocommit, or to another database, is refused.

        Raises:
            InvalidInput: an option cannot be used.
        """
        return self.with_options(given)


class Declare(DeclareBase):
    """The decorator behind `@app.job` and `@app.job(...)`."""

    @overload
    def __call__(
        self, function: Callable[Concatenate[Job, P], Coroutine[Any, Any, R]], /
    ) -> DeclaredJob[Concatenate[Job, P], P, R, Coroutine[Any, Any, R]]: ...

    @overload
    def __call__(
        self, function: Callable[P, Coroutine[Any, Any, R]], /
    ) -> DeclaredJob[P, P, R, Coroutine[Any, Any, R]]: ...

    @overload
    def __call__(
        self, function: Callable[Concatenate[Job, P], R], /
    ) -> DeclaredJob[Concatenate[Job, P], P, R, R]: ...

    @overload
    def __call__(self, function: Callable[P, R], /) -> DeclaredJob[P, P, R, R]: ...

    @overload
    def __call__(self, /, **given: Unpack[GivenOptions]) -> Declare: ...

    def __call__(self, function: Callable[..., Any] | None = None, /, **given: Unpack[GivenOptions]) -> Any:
        """Declare a job. Every job stores its name: the function's, unless `name` gives another.

        A function whose first parameter is annotated `Job` gets the running job there. Options (`GivenOptions`)
        that are left out come from the queue, the app and the settings, in this order.

        Raises:
            DeclarationError: the name is taken, a parameter cannot be stored, or an option is wrong.
        """
        return self.declared(function, **given)
