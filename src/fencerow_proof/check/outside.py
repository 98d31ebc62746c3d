"""Outside calls: what a handler asks of other systems, faked while it is checked."""

from __future__ import annotations

import functools
import importlib
import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from fencerow_proof.check.kinds import Kind
from fencerow_proof.check.seam import PLANTED, Seam
from fencerow_proof.check.wire import Declared
from fencerow_proof.errors import CheckNeedsMore

REPEATABLE = "repeatable"  # the one key of calls that do no harm when they are made again
_seam: Seam | None = None  # of the run in this process


class DependencyDown(ConnectionError):
    """What an outside call raises when the check lets it fail."""


@contextmanager
def outside_call(name: str, key: str | None = None, *, repeatable: bool = False) -> Iterator[None]:
    """Declare an outside call, around the lines that stand for it in a fake of your own.

    `key` is the idempotency key under which the other system does it once; without one each call counts, unless it
    is `repeatable`: then to make it again does no harm. Outside of a check it does nothing.

    Raises:
        DependencyDown: the check lets this call fail.
    """
    if repeatable:
        key = REPEATABLE
    action = _seam.outside(Kind.CALL, name, key) if _seam is not None else None
    if action is None or _seam is None:
        yield
        return
    if not _seam.may_go(action):
        error = DependencyDown(PLANTED)
        _seam.over(action, error)
        raise error
    try:
        yield
    finally:
        _seam.over(action, None)


def fake_all(seam: Seam, declared: Sequence[Declared]) -> None:
    """Put fakes where the declared functions are, for the rest of this process."""
    global _seam
    _seam = seam
    for each in declared:
        holder, name, original = found(each.target)
        answer = None if each.answer is None else found(each.answer)[2]
        setattr(holder, name, _faked(each, original, answer))


def found(target: str) -> tuple[Any, str, Any]:
    """What `module:name` or `module:Class.method` means: the object that holds it, its name there, and it.

    Raises:
        CheckNeedsMore: there is nothing of that name.
    """
    module_name, _, qualname = target.partition(":")
    try:
        holder: Any = importlib.import_module(module_name)
        *path, name = qualname.split(".")
        for part in path:
            holder = getattr(holder, part)
        return holder, name, getattr(holder, name)
    except (ImportError, AttributeError, ValueError) as error:
        raise CheckNeedsMore(
            f"there is no {target[:200]!r}",
            f"{type(error).__name__}: {error}",
            "name it as module:function or module:Class.method, where the handler looks it up",
        ) from None


def _faked(each: Declared, original: Any, answer: Callable[..., Any] | None) -> Callable[..., Any]:
    signature = inspect.signature(original)
    name = each.target

    def key_of(args: tuple[Any, ...], kwargs: dict[str, Any]) -> str | None:
        if each.key is None:
            return None
        value = signature.bind(*args, **kwargs).arguments.get(each.key)
        return None if value is None else str(value)

    if inspect.iscoroutinefunction(original):

        @functools.wraps(original)
        async def afake(*args: Any, **kwargs: Any) -> Any:
            with outside_call(name, key_of(args, kwargs), repeatable=each.repeatable):
                result = None if answer is None else answer(*args, **kwargs)
                return await result if inspect.isawaitable(result) else result

        return afake

    @functools.wraps(original)
    def fake(*args: Any, **kwargs: Any) -> Any:
        with outside_call(name, key_of(args, kwargs), repeatable=each.repeatable):
            return None if answer is None else answer(*args, **kwargs)

    return fake
