"""What users call answers a call that does not fit with our own error (`model/misfit.py`): Python's names neither the
closest word nor what another system's word is here.

A package lets the functions that it hands out answer, and the constructors of its classes (`lazy.py`); `answer` stands
above a class whose methods users call. Verbs do so by themselves (`core/verb.py`), and what takes options as a mapping
asks `refuse_unknown`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from inspect import iscoroutinefunction
from types import FunctionType
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from fencerow.core.errors import WrongCall

F = TypeVar("F", bound=Callable[..., Any])
C = TypeVar("C", bound=type[Any])


def answering(called: F) -> F:
    """The same function, which says what does not fit when it is called.

    Raises, when it is called:
        WrongCall: an argument is unknown, or lacks.
    """
    if hasattr(called, "__wrapped__"):
        return called  # it does so already, or what stands around it takes everything

    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return called(*args, **kwargs)
        except TypeError:
            wrong = _misfit(called, args, kwargs)
            if wrong is None:
                raise  # it was called, and something in it failed
            raise wrong from None

    async def acall(*args: Any, **kwargs: Any) -> Any:
        try:
            begun = called(*args, **kwargs)
        except TypeError as error:  # nothing of it has run
            raise _misfit(called, args, kwargs) or error from None
        return await begun

    return wraps(called)(acall if iscoroutinefunction(called) else call)  # type: ignore[return-value]


def answer(called: C) -> C:
    """Let a class say what does not fit when one is made of it, or when a public method that stands in it is called.

    It decorates the class.
    """
    answer_when_made(called)
    for name, member in list(vars(called).items()):
        if isinstance(member, FunctionType) and not name.startswith("_"):
            setattr(called, name, answering(member))
    return called


def answer_when_made(called: type[Any]) -> None:
    """Let a class say what does not fit when one is made of it, if it is of ours and no record of C."""
    maker = next(each for each in called.__mro__ if "__init__" in vars(each))
    made_by = vars(maker)["__init__"]
    if isinstance(made_by, FunctionType) and maker.__module__.startswith("fencerow"):
        setattr(maker, "__init__", answering(made_by))  # noqa: B010 - for type checkers it is no attribute


def _misfit(
    called: Callable[..., Any], given: Sequence[object], named: Mapping[str, object]
) -> WrongCall | None:
    from fencerow.core.model.misfit import misfit, name_of_call  # who writes no wrong call never loads it

    return misfit(called, name_of_call(called, given), given, named)
