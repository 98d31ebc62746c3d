"""The exclusive key of a job: said once, or computed from the arguments of each submit."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from fencerow.core.errors import DeclarationError, FencerowError, InvalidInput
from fencerow.core.model.codec import ArgumentsCodec
from fencerow.core.model.defaults import check_number
from fencerow.core.model.text import check_text

KEY_LENGTH_MAX: Final = 256
SLOTS_MAX: Final = 1_000_000
ExclusiveOption = str | Callable[..., str | None]


@dataclass(frozen=True, slots=True)
class Exclusive:
    """What was said of a job's turns, by its declaration or by `using`. None: nothing was said."""

    key: ExclusiveOption | None = None
    slots: int | None = None
    strict: bool | None = None

    def over(self, below: Exclusive) -> Exclusive:
        """This, and what it does not say as `below` says it."""
        return Exclusive(
            below.key if self.key is None else self.key,
            below.slots if self.slots is None else self.slots,
            below.strict if self.strict is None else self.strict,
        )


NOT_EXCLUSIVE: Final = Exclusive()


def exclusive_of(given: Mapping[str, Any]) -> Exclusive:
    """What the options say of turns.

    Raises:
        InvalidInput, ConfigError: one of them cannot be used.
    """
    key: ExclusiveOption | None = given.get("exclusive")
    slots, strict = given.get("exclusive_slots"), given.get("strict")
    if key is None and slots is None and strict is None:
        return NOT_EXCLUSIVE
    if isinstance(key, str) or (key is not None and not callable(key)):
        check_text(key, "exclusive", KEY_LENGTH_MAX)
    if slots is not None:
        check_number("exclusive_slots", slots, 1, SLOTS_MAX)
    if strict is not None and not isinstance(strict, bool):
        raise InvalidInput(
            f"strict is of type {type(strict).__name__}", "True or False is expected", "correct strict"
        )
    return Exclusive(key, slots, strict)


def key_of(exclusive: Exclusive, args: bytes, arguments: ArgumentsCodec) -> str | None:
    """The key of a submit with these arguments; None: it needs no turn.

    Raises:
        InvalidInput: the user's function failed, or gave something else.
    """
    if not callable(exclusive.key):
        return exclusive.key
    positional, named = arguments.decode(args)
    for name, parameter in arguments.parameters.items():
        if not parameter.required and not parameter.positional_only:
            named.setdefault(name, parameter.default)
    try:
        found = exclusive.key(*positional, **named)
    except Exception as error:
        if isinstance(error, FencerowError):
            raise
        raise InvalidInput(
            f"the function in exclusive= of {arguments.name} raised {type(error).__name__}",
            "it is called with the arguments of each submit, and nothing was stored",
            "correct the function, or return None for arguments that need no turn",
        ) from error
    return None if found is None else check_text(found, "the exclusive key", KEY_LENGTH_MAX)


def refuse_without_key(exclusive: Exclusive) -> None:
    """Slots and strictness are those of a key.

    Raises:
        InvalidInput: there is none.
    """
    if exclusive.key is None and (exclusive.slots is not None or exclusive.strict is not None):
        raise InvalidInput(
            "exclusive_slots or strict was given without exclusive",
            "they say how many jobs of a key run at once, and whether a retry keeps the turn",
            "add exclusive=",
        )


def refuse_other_parameters(exclusive: Exclusive, arguments: ArgumentsCodec, decorator: str) -> None:
    """A function that computes the key takes what the job takes.

    Raises:
        DeclarationError: it cannot be called so.
    """
    if not callable(exclusive.key):
        return
    positional = [None for each in arguments.parameters.values() if each.positional_only]
    named = {name: None for name, each in arguments.parameters.items() if not each.positional_only}
    try:
        inspect.signature(exclusive.key).bind(*positional, **named)
    except TypeError as error:
        raise DeclarationError(
            f"the function in exclusive= of {arguments.name} cannot be called with the job's arguments: {error}",
            f"{decorator} calls it by the names {', '.join(arguments.parameters) or '(none)'}",
            "give it these parameters, or **others for those that it does not need",
        ) from None
    except ValueError:  # a function written in C, whose parameters nobody knows
        return
