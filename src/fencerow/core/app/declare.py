"""`@app.job`: a function becomes a job that can be submitted, and stays callable as the function it is.

The types of `submit` are those of the function without its `job` parameter, so a type checker sees a wrong
argument where it is written. What it knows of the options is said above the wings: `fencerow/declaring.py`.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Generic, ParamSpec, Protocol, TypeVar

from fencerow.core.app.doors import refuse_uncallable, warn_of_untyped
from fencerow.core.app.from_arguments import refuse_unfit
from fencerow.core.app.handlers import handler_of
from fencerow.core.app.job_options import NO_JOB_OPTIONS, JobOptions, job_options
from fencerow.core.app.options import NAME_LENGTH_MAX, QUEUE_LENGTH_MAX, SubmitOptions, submit_options
from fencerow.core.app.submission import Declaration, Layers
from fencerow.core.app.submitter import Submittable, Submitter
from fencerow.core.errors import DeclarationError, InvalidInput
from fencerow.core.model.defaults import Defaults
from fencerow.core.model.handler import Handler
from fencerow.core.model.packing import PLAIN, Packing
from fencerow.core.model.retry import Matchers
from fencerow.core.offered import functions_in
from fencerow.core.worker.brought import check_apart
from fencerow.core.worker.middleware import NO_MIDDLEWARE, Middleware
from fencerow.db.text import check_text

C = ParamSpec("C")  # the parameters of the function itself
P = ParamSpec("P")  # those of a submit: without `job`
R = TypeVar("R")  # what the job results in
X = TypeVar("X")  # what calling the function returns: R, or a coroutine of it

DEFAULT_QUEUE = "default"
NO_OPTIONS = SubmitOptions()


class DeclaredBase(Submittable[P, R], Generic[C, P, R, X]):
    """A declared job, without the typed options of `using`. Users meet it as `DeclaredJob`."""

    def __init__(
        self, submitter: Submitter, declaration: Declaration, function: Callable[C, X], runs_here: bool = True
    ) -> None:
        super().__init__(submitter, declaration, NO_OPTIONS)
        self.runs_here = runs_here
        self._function = function
        self._qualname: str = getattr(function, "__qualname__", "?")
        self.where = f"{function.__module__}.{self._qualname}"
        self.middleware: Middleware = (
            NO_MIDDLEWARE  # of its app, for a child process, which finds the job alone
        )
        functools.update_wrapper(self, function)

    def __call__(self, *args: C.args, **kwargs: C.kwargs) -> X:
        return self._function(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<DeclaredJob {self.name} in queue {self.queue}>"

    def __reduce__(self) -> str:
        """Pickled and copied like the function whose place it has taken: by where it stands in its module."""
        return self._qualname

    @property
    def name(self) -> str:
        """The name it is stored under."""
        return self._declaration.name

    @property
    def queue(self) -> str:
        """The queue it goes to unless a submit says otherwise."""
        return self._declaration.queue

    @property
    def handler(self) -> Handler:
        """What a worker needs to run it."""
        return self._declaration.handler

    def with_options(self, given: Mapping[str, Any]) -> Submittable[P, R]:
        """The same job with options for the submits made through what is returned.

        Raises:
            InvalidInput: an option cannot be used.
        """
        return Submittable(self._submitter, self._declaration, submit_options(**given))


Register = Callable[[DeclaredBase[..., ..., Any, Any]], None]


class MakeHandler(Protocol):
    """From a function to what workers run: `handler_of`, or what batches use."""

    def __call__(
        self,
        name: str,
        function: Callable[..., Any],
        limits: Defaults,
        /,
        *,
        retry_on: Matchers,
        fail_on: Matchers,
        payload_bytes_max: int,
    ) -> Handler: ...


@dataclass(frozen=True, slots=True)
class Declarer:
    """What every decorator of one app ends in. `makes`: the class of its jobs."""

    submitter: Submitter
    register: Register
    layers: Layers
    payload_bytes_max: int
    packing: Packing = PLAIN
    makes: type[DeclaredBase[..., ..., Any, Any]] = DeclaredBase

    def declare(
        self,
        function: Callable[..., Any],
        options: JobOptions,
        make_handler: MakeHandler,
        decorator: str,
        *,
        called: Callable[..., Any] | None = None,
        runs_here: bool = True,
    ) -> DeclaredBase[..., ..., Any, Any]:
        """Declare the function under these options.

        `called` is what calling the job calls instead. A job that does not run here has no handler for workers.

        Raises:
            DeclarationError: see `Declare`.
        """
        refuse_uncallable(function, decorator)
        name = _declared_text(
            options.name or stored_name(function, decorator), "the job's name", NAME_LENGTH_MAX
        )
        queue = _declared_text(options.queue or DEFAULT_QUEUE, "queue", QUEUE_LENGTH_MAX)
        handler = make_handler(
            name,
            function,
            self.layers.of(queue, options.limits),
            retry_on=options.retry_on,
            fail_on=options.fail_on,
            payload_bytes_max=options.payload_bytes_max or self.payload_bytes_max,
        )
        warn_of_untyped(function, handler.arguments.untyped, decorator)
        codec = replace(handler.arguments, version=options.args_version, upgrade=options.upgrade)
        handler = replace(
            handler,
            arguments=codec,
            process=options.process,
            memory_bytes_max=options.memory_bytes_max,
            packing=self.packing,
        )
        if handler.process:
            check_apart(handler, served_by=None)
        for option, function_of in functions_in(options.of_wings):
            refuse_unfit(function_of, option, codec, decorator)
        declaration = Declaration(
            name, queue, options.limits, options.key_lifetime_s, handler, options.of_wings
        )
        declared = self.makes(self.submitter, declaration, called or function, runs_here)
        self.register(declared)
        return declared


class DeclareBase:
    """The decorator behind `@app.job` and `@app.job(...)`, as far as it has no types."""

    def __init__(self, declarer: Declarer, options: JobOptions = NO_JOB_OPTIONS) -> None:
        self._declarer = declarer
        self._options = options

    def __call__(self, *function: Any, **given: Any) -> Any:
        return self.declared(*function, **given)

    def declared(self, function: Any = None, /, **given: Any) -> Any:
        """Declare the function, or take options for it.

        Raises:
            DeclarationError: the name is taken, a parameter cannot be stored, or an option is wrong.
        """
        if function is not None:
            return self._declarer.declare(function, self._options, handler_of, "@app.job")
        return type(self)(self._declarer, job_options(given, "@app.job"))


def stored_name(function: Callable[..., Any], decorator: str) -> str:
    """The function's own name: without its module, so that moving it does not orphan the jobs that are stored."""
    name = getattr(inspect.unwrap(function), "__name__", "")
    if not name or name == "<lambda>":
        raise DeclarationError(
            "the decorated function has no name", "jobs are stored under a name", f"pass name= to {decorator}"
        )
    return str(name)


def _declared_text(text: object, what: str, length_max: int) -> str:
    try:
        return check_text(text, what, length_max)
    except InvalidInput as error:
        raise DeclarationError(error.what, error.why, error.fix) from None
