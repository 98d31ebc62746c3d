"""A job declared apart from its handler: one code base submits it, another runs it, both import the contract.

@contract(queue="documents")
def extract(path: str, pages: int = 1) -> Summary: ...      # shared: a name and types, no code

app.declare(extract).submit("a.pdf")                        # where it is submitted

@app.handles(extract)                                       # where it is run
async def run(job: Job, path: str, pages: int = 1) -> Summary: ...

Who has no contracts never loads it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import (
    TYPE_CHECKING,
    Any,
    Concatenate,
    Final,
    Generic,
    NoReturn,
    ParamSpec,
    TypeVar,
    Unpack,
    overload,
)

from fencerow.core.app.declare import Declarer, stored_name
from fencerow.core.app.doors import refuse_uncallable
from fencerow.core.app.handlers import handler_of, job_parameter_of, refuse_generators
from fencerow.core.app.job_options import (
    CONTRACT_NAMES,
    HANDLING_NAMES,
    NO_JOB_OPTIONS,
    HandlingOptions,
    JobOptions,
    job_options,
)
from fencerow.core.errors import DeclarationError
from fencerow.core.model.codec import ArgumentsCodec
from fencerow.core.model.defaults import Defaults
from fencerow.core.model.signature import Parameter, name_of, return_annotation
from fencerow.declaring import DeclaredJob

if TYPE_CHECKING:
    from fencerow.job import Job
    from fencerow.options import ContractOptions

P = ParamSpec("P")
R = TypeVar("R")
# What only one of the two takes: why, and where to write it.
AT_THE_HANDLER: Final = dict.fromkeys(
    HANDLING_NAMES,
    ("only the code that runs the job needs it", "write it at the handler, @app.handles(contract, ...)"),
)
IN_THE_CONTRACT: Final = dict.fromkeys(
    CONTRACT_NAMES, ("it is stored with the job", "write it at the contract, @contract(...)")
)


class Contract(Generic[P, R]):
    """The name of a job, the types of its arguments and its result, and what a submit stores with it.

    Made by `contract`; taken by `App.declare` and `App.handles`.

    Raises:
        DeclarationError: the function takes a Job, is a generator or has no name.
    """

    def __init__(self, function: Callable[..., Any], options: JobOptions) -> None:
        refuse_uncallable(function, "@contract")
        refuse_generators(function)
        if job_parameter_of(function) is not None:
            raise DeclarationError(
                f"the contract {name_of(function)} takes a Job",
                "a contract says what a caller passes; only the handler gets the running job",
                "take it as the handler's first parameter instead",
            )
        self.function = function
        self.__module__ = function.__module__  # where pickle looks for it
        self._qualname: str = getattr(function, "__qualname__", "?")
        self.options = replace(options, name=options.name or stored_name(function, "@contract"))

    def __repr__(self) -> str:
        return f"<Contract {self.options.name}>"

    def __reduce__(self) -> str:
        """Pickled like the function whose place it has taken: by where that stands in its module."""
        return self._qualname


class Handles(Generic[P, R]):
    """The decorator behind `@app.handles(contract)`."""

    def __init__(self, declarer: Declarer, contract: Contract[P, R], options: JobOptions) -> None:
        self._declarer = declarer
        self._contract = contract
        self._options = options

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

    def __call__(self, function: Any, /) -> Any:
        """Declare the function that runs the job.

        Raises:
            DeclarationError: its types differ from those of the contract, or the name is taken.
        """
        refuse_uncallable(function, "@app.handles")
        refuse_other_types(self._contract.function, function)
        return self._declarer.declare(function, self._options, handler_of, "@app.handles")


def declared_apart(declarer: Declarer, contract: Contract[P, R]) -> Any:
    """A job of a contract, which this process can submit and not run.

    Raises:
        DeclarationError: its name is taken, or its types cannot be stored.
    """
    options = _options_of(contract)
    return declarer.declare(
        contract.function, options, handler_of, "@contract", called=_nothing_here, runs_here=False
    )


def handling_options(contract: Contract[P, R], given: HandlingOptions) -> JobOptions:
    """The options of a contract, and those of its handler beside them.

    Raises:
        WrongCall: one of these is unknown. DeclarationError: one is of the wrong type or out of range; or it is no
            contract.
    """
    declared = _options_of(contract)
    own = job_options(given, "@app.handles", known=HANDLING_NAMES, offered=False, elsewhere=IN_THE_CONTRACT)
    return replace(
        declared,
        limits=Defaults.merged(declared.limits, own.limits),
        retry_on=own.retry_on,
        fail_on=own.fail_on,
        upgrade=own.upgrade,
        process=own.process,
        memory_bytes_max=own.memory_bytes_max,
    )


def _options_of(contract: object) -> JobOptions:
    """The contract's options; its name is among them."""
    if not isinstance(contract, Contract):
        raise DeclarationError(
            f"a value of type {type(contract).__name__} was given where a contract is expected",
            "a contract is made by @contract",
            "decorate the declaring function with @contract",
        )
    return contract.options


def _nothing_here(*_args: Any, **_kwargs: Any) -> NoReturn:
    raise DeclarationError(
        "a job that is declared apart from its handler was called",
        "its code is in another program",
        "submit it, or call the handler",
    )


def refuse_other_types(declared: Callable[..., Any], handler: Callable[..., Any]) -> None:
    """Make sure that a handler takes and returns what its contract says. Defaults are the handler's own.

    Raises:
        DeclarationError: a parameter or the result differs.
    """
    refuse_generators(handler)
    wanted = ArgumentsCodec.of(declared, None).parameters
    found = ArgumentsCodec.of(handler, job_parameter_of(handler)).parameters
    if list(wanted) != list(found):
        raise _differs(handler, f"its parameters are ({', '.join(found)})", f"({', '.join(wanted)})")
    for name, parameter in wanted.items():
        if _essence(parameter) != _essence(found[name]):
            raise _differs(handler, f"{name} is {_shown(found[name])}", f"{name} as {_shown(parameter)}")
    if return_annotation(declared) != return_annotation(handler):
        raise _differs(handler, f"it returns {return_annotation(handler)}", str(return_annotation(declared)))


def _essence(parameter: Parameter) -> tuple[Any, Any, bool]:
    return parameter.annotation, parameter.kind, parameter.required


def _shown(parameter: Parameter) -> str:
    kind = (
        ""
        if parameter.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD
        else f" ({parameter.kind.description})"
    )
    annotation = parameter.annotation
    name = annotation.__qualname__ if isinstance(annotation, type) else str(annotation)
    return f"{name}{'' if parameter.required else ' = ...'}{kind}"


def _differs(handler: Callable[..., Any], found: str, wanted: str) -> DeclarationError:
    return DeclarationError(
        f"{name_of(handler)} does not fit its contract: {found}",
        f"the contract says {wanted}",
        "change the handler, or the contract with a new args_version",
    )


@overload
def contract(function: Callable[P, Coroutine[Any, Any, R]], /) -> Contract[P, R]: ...
@overload
def contract(function: Callable[P, R], /) -> Contract[P, R]: ...
@overload
def contract(**given: Unpack[ContractOptions]) -> ContractMaker: ...
def contract(function: Callable[..., Any] | None = None, /, **given: Unpack[ContractOptions]) -> Any:
    """Declare a job without the code that runs it, by a function that is never called.

    It needs no app and opens nothing, so you can put it into a package that both programs install.

    Raises:
        DeclarationError: it takes a Job, is a generator, or an option is wrong.
    """
    if function is not None:
        return Contract(function, NO_JOB_OPTIONS)
    return ContractMaker(job_options(given, "@contract", known=CONTRACT_NAMES, elsewhere=AT_THE_HANDLER))


class ContractMaker:
    """The decorator behind `@contract(...)`."""

    def __init__(self, options: JobOptions) -> None:
        self._options = options

    @overload
    def __call__(self, function: Callable[P, Coroutine[Any, Any, R]], /) -> Contract[P, R]: ...
    @overload
    def __call__(self, function: Callable[P, R], /) -> Contract[P, R]: ...
    def __call__(self, function: Callable[..., Any], /) -> Contract[..., Any]:
        return Contract(function, self._options)
