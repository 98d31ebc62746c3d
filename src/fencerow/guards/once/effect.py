"""`once`: any operation of the user, done once for a key, whoever asks for it and however often."""

from __future__ import annotations

import asyncio
import functools
import inspect
import time
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Any, ParamSpec, TypeVar, cast

from fencerow.core.locator import Locator, acheck_tables, check_tables
from fencerow.core.model.ids import new_id
from fencerow.core.model.seconds import Seconds
from fencerow.core.model.signature import return_annotation
from fencerow.core.model.value import ValueCodec
from fencerow.db.run import joining
from fencerow.db.strikes import sheltered
from fencerow.guards.bounded import awithin, within
from fencerow.guards.checked import STALE_S_MIN, check_key, check_seconds, fingerprint_of, owner_now
from fencerow.guards.lent import running_on
from fencerow.guards.once.errors import OnceMisuse
from fencerow.guards.once.reserving import OnceKey, Reserved, Turn, reserve_once
from fencerow.guards.once.run import OnceRun, afree_unmarked, agive_back, free_unmarked, give_back, giving
from fencerow.guards.pauses import pauses
from fencerow.located import arun, run

P = ParamSpec("P")
T = TypeVar("T")

ANYTHING = ValueCodec.of(Any)


class Once:
    """Something to do once for a key: a context manager, a function (`call`) or a decorator. Made by `once`."""

    def __init__(
        self,
        place: Locator,
        key: str | Callable[..., str],
        *,
        scope: str,
        fingerprint: Any,
        owner: str | None,
        attempt: int | None,
        stale_s: Seconds,
        lifetime_s: Seconds,
        timeout_s: Seconds,
        wait_s: Seconds,
        result_type: Any,
        connection: object | None,
    ) -> None:
        self._place = place
        self._key = key if callable(key) else check_key(key, "the key")
        self._scope = check_key(scope, "the scope")
        self._fingerprint = fingerprint
        self._owner = owner
        self._attempt = attempt
        self._stale_s = check_seconds(stale_s, "stale_s", STALE_S_MIN)
        self._lifetime_s = check_seconds(lifetime_s, "lifetime_s", 0.0)
        self._timeout_s = check_seconds(timeout_s, "timeout_s", 0.01, 3600.0)
        self._wait_s = check_seconds(wait_s, "wait_s", 0.0)
        self._codec = None if result_type is None else ValueCodec.of(result_type)
        self._connection = connection
        self._entered: OnceRun | None = None

    # --- as a function -----------------------------------------------------------------------------

    def call(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call the function unless this was done for the key before, and return the result of this call or of
        that one.

        An exception of the function releases the key and passes through.

        Raises:
            OnceRunning: somebody else does it now, and did not end within `wait_s`.
            OnceConflict: the key belongs to another payload.
            Unavailable: the database did not answer within `timeout_s`; the function was not called.
        """
        turn = self._begin(self._wanted(args, kwargs), self._codec_of(function))
        if turn.needed:
            try:
                result = function(*args, **kwargs)
            except BaseException as error:
                give_back(turn, error)
                raise
            turn.done(result)
        return cast(T, turn.result)

    async def acall(self, function: Callable[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs) -> T:
        """`call` for async code and a coroutine function."""
        turn = await self._abegin(self._wanted(args, kwargs), self._codec_of(function))
        if turn.needed:
            try:
                result = await function(*args, **kwargs)
            except BaseException as error:
                await agive_back(turn, error)
                raise
            await turn.adone(result)
        return cast(T, turn.result)

    # --- as a decorator ----------------------------------------------------------------------------

    def __call__(self, function: Callable[P, T]) -> Callable[P, T]:
        """Do the function once for each key. `key` and `fingerprint` may be functions of its arguments."""
        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def acalled(*args: P.args, **kwargs: P.kwargs) -> Any:
                return await self.acall(cast(Any, function), *args, **kwargs)

            return cast(Callable[P, T], acalled)

        @functools.wraps(function)
        def called(*args: P.args, **kwargs: P.kwargs) -> T:
            return self.call(function, *args, **kwargs)

        return called

    # --- as a context manager ----------------------------------------------------------------------

    def __enter__(self) -> OnceRun:
        self._check_free()
        self._entered = self._begin(self._wanted((), {}), self._codec or ANYTHING)
        return self._entered

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        turn = self._left()
        if error is not None:
            give_back(turn, error)
        elif turn.is_open:
            turn.done()
        else:
            free_unmarked(turn)

    async def __aenter__(self) -> OnceRun:
        self._check_free()
        self._entered = await self._abegin(self._wanted((), {}), self._codec or ANYTHING)
        return self._entered

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        turn = self._left()
        if error is not None:
            await agive_back(turn, error)
        elif turn.is_open:
            await turn.adone()
        else:
            await afree_unmarked(turn)

    # --- taking the key ----------------------------------------------------------------------------

    def _begin(self, wanted: OnceKey, codec: ValueCodec) -> OnceRun:
        until, pause = time.monotonic() + self._wait_s, pauses()
        while True:
            token = new_id()
            reserved = self._reserve(wanted, token)
            left_s = until - time.monotonic()
            if reserved.turn is not Turn.OTHERS or left_s <= 0:
                return OnceRun(self._place, wanted, token, reserved, codec, self._connection)
            time.sleep(min(next(pause), left_s))

    async def _abegin(self, wanted: OnceKey, codec: ValueCodec) -> OnceRun:
        until, pause = time.monotonic() + self._wait_s, pauses()
        while True:
            token = new_id()
            reserved = await self._areserve(wanted, token)
            left_s = until - time.monotonic()
            if reserved.turn is not Turn.OTHERS or left_s <= 0:
                return OnceRun(self._place, wanted, token, reserved, codec, self._connection)
            await asyncio.sleep(min(next(pause), left_s))

    def _reserve(self, wanted: OnceKey, token: str) -> Reserved:
        taking = joining(reserve_once(wanted, token, running_on(self._connection)), self._connection)

        def ask() -> Reserved:
            check_tables(self._place)
            return run(self._place, taking, self._connection)

        if (
            self._connection is not None
        ):  # its driver may belong to this thread, and how long it waits is the user's
            return ask()
        return within(
            self._timeout_s,
            f"{wanted.key!r} is done",
            ask,
            lambda _: run(self._place, giving(wanted, token)),
        )

    async def _areserve(self, wanted: OnceKey, token: str) -> Reserved:
        taking = joining(reserve_once(wanted, token, running_on(self._connection)), self._connection)

        async def ask() -> Reserved:
            await acheck_tables(self._place)
            return await arun(self._place, taking, self._connection)

        if self._connection is not None:
            return await ask()
        return await awithin(
            self._timeout_s,
            f"{wanted.key!r} is done",
            ask(),
            lambda _: arun(self._place, giving(wanted, token)),
        )

    @sheltered  # what looks at types takes every error for an answer
    def _wanted(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> OnceKey:
        key = check_key(self._key(*args, **kwargs), "the key") if callable(self._key) else self._key
        payload = self._fingerprint(*args, **kwargs) if callable(self._fingerprint) else self._fingerprint
        owner = owner_now(self._owner, self._attempt)
        return OnceKey(
            self._scope,
            key,
            owner.name,
            owner.attempt,
            fingerprint_of(payload),
            self._stale_s,
            self._lifetime_s,
        )

    @sheltered
    def _codec_of(self, function: Callable[..., Any]) -> ValueCodec:
        """What was declared, else what the function says that it returns."""
        if self._codec is None:
            self._codec = ValueCodec.of(_returned(function))
        return self._codec

    def _check_free(self) -> None:
        if self._entered is not None:
            raise OnceMisuse(
                "this `once` is in use already", "an object is for one run at a time", "make one for each use"
            )

    def _left(self) -> OnceRun:
        assert self._entered is not None, "left without having been entered"
        turn, self._entered = self._entered, None
        return turn


def once(
    place: Locator,
    key: str | Callable[..., str],
    *,
    scope: str = "once",
    fingerprint: Any = None,
    owner: str | None = None,
    attempt: int | None = None,
    stale_s: Seconds = 300.0,
    lifetime_s: Seconds = 86400.0,
    timeout_s: Seconds = 10.0,
    wait_s: Seconds = 0.0,
    result_type: Any = None,
    connection: object | None = None,
) -> Once:
    """Do something once for a key, however often it is asked for: the key is taken before the effect.

    A later caller gets the stored result, until `lifetime_s` after the end. A caller that comes while
    somebody else does it waits up to `wait_s`, and then gets OnceRunning. After a failure the key is free at
    once. After a crash the key stays taken for `stale_s`, by the database's clock; only a later attempt of
    the same owner takes it over before that. The owner is the job that this code runs in, with its attempt;
    outside of jobs it is `owner` with `attempt`, a number that each later run raises. Without an attempt
    nobody takes the key over early, because an earlier run may still be at work. `fingerprint` is data that
    tells payloads apart: the same key with another fingerprint is refused.

    With `connection` all of it is part of the transaction that is open there.

    Raises, when the key is taken:
        UnusableConnection: no transaction is open on `connection`.
        OnceConflict: the key belongs to another payload.
        Unavailable, Busy: the database did not answer within `timeout_s`. Do not go on without it.
        InvalidInput: the key is empty, too long, or holds what cannot be kept.
        LeaseLost: the attempt that this code runs in no longer holds its job.
    """
    return Once(
        place,
        key,
        scope=scope,
        fingerprint=fingerprint,
        owner=owner,
        attempt=attempt,
        stale_s=stale_s,
        lifetime_s=lifetime_s,
        timeout_s=timeout_s,
        wait_s=wait_s,
        result_type=result_type,
        connection=connection,
    )


def _returned(function: Callable[..., Any]) -> Any:
    """The type that a function says it returns; functions written in C mostly say nothing.

    Raises:
        DeclarationError: it cannot be kept as JSON. Raised before the effect.
    """
    try:
        return return_annotation(function)
    except ValueError:
        return Any
