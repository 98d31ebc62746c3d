"""Functions of the user's in options: called with the arguments of each submit, they say what the option says."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from fencerow.core.errors import DeclarationError, FencerowError, InvalidInput
from fencerow.core.model.codec import ArgumentsCodec


def computed(function: Callable[..., Any], option: str, args: bytes, arguments: ArgumentsCodec) -> Any:
    """What a function of the user's makes of the arguments of a submit.

    Raises:
        InvalidInput: it failed.
    """
    positional, named = arguments.decode(args)
    for name, parameter in arguments.parameters.items():
        if not parameter.required and not parameter.positional_only:
            named.setdefault(name, parameter.default)
    try:
        return function(*positional, **named)
    except Exception as error:
        if isinstance(error, FencerowError):
            raise
        raise InvalidInput(
            f"the function in {option}= of {arguments.name} raised {type(error).__name__}",
            "it is called with the arguments of each submit, and nothing was stored",
            "correct the function, or return None for arguments that it has nothing to say of",
        ) from error


def refuse_unfit(function: object, option: str, arguments: ArgumentsCodec, decorator: str) -> None:
    """Make sure that a function in an option, if it is one, can be called with the job's arguments.

    Raises:
        DeclarationError: it cannot.
    """
    if not callable(function):
        return
    positional = [None for each in arguments.parameters.values() if each.positional_only]
    named = {name: None for name, each in arguments.parameters.items() if not each.positional_only}
    try:
        inspect.signature(function).bind(*positional, **named)
    except TypeError as error:
        raise DeclarationError(
            f"the function in {option}= of {arguments.name} cannot be called with the job's arguments: {error}",
            f"{decorator} calls it by the names {', '.join(arguments.parameters) or '(none)'}",
            "give it these parameters, or **others for those that it does not need",
        ) from None
    except ValueError:  # a function written in C, whose parameters nobody knows
        return
