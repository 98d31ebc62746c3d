"""`once`: any operation of the user, done once for a key, whoever asks for it and however often."""

from __future__ import annotations

import asyncio
import functools
import inspect
import time
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Any, ParamSpec, TypeVar, cast

from fencerow.db.statement import Operation
from fencerow.errors import FencerowError, OnceLost, OnceMisuse, OnceRunning
from fencerow.model.codec import ValueCodec
from fencerow.model.ids import new_id
from fencerow.model.signature import return_annotation
from fencerow.primitives.bounded import awithin, within
from fencerow.primitives.checked import STALE_S_MIN, check_key, check_seconds, fingerprint_of, owner_now
from fencerow.primitives.pauses import pauses
from fencerow.primitives.place import Place, arun, run
from fencerow.primitives.ready import check_tables
from fencerow.primitives.reserving import (
    OnceKey,
    Reserved,
    Turn,
    end_once,
    release_once,
    renew_once,
    reserve_once,
)
from fencerow.primitives.running import running

P = ParamSpec("P")
T = TypeVar("T")

ANYTHING = ValueCodec.of(Any)


class OnceRun:
    """One caller's turn at a key. `needed`: it is this caller who does it; else `result` is what came of it.

    `owner` is who does it or did it.
    """

    def __init__(
        self,
        place: Place,
        wanted: OnceKey,
        token: str,
        reserved: Reserved,
        codec: ValueCodec,
        connection: object | None,
    ) -> None:
        self._place = place
        self._wanted = wanted
        self._token = token
        self._reserved = reserved
        self._codec = codec
        self._connection = connection
        self._ended = False
        self._happened = False
        self._released = False
        self._result: Any = None

    @property
    def key(self) -> str:
        return self._wanted.key

    @property
    def owner(self) -> str:
        return self._reserved.owner

    @property
    def needed(self) -> bool:
        """Whether the effect is this caller's to do."""
        return self._reserved.turn is Turn.MINE

    @property
    def is_open(self) -> bool:
        """Whether this caller has the key and has not said yet what came of it."""
        return self.needed and not self._ended and not self._released

    @property
    def happened(self) -> bool:
        """Whether the effect is known to have happened, even if that could not be kept: then it is not tried again."""
        return self._happened

    @property
    def result(self) -> Any:
        """What the effect returned, this time or the first time.

        Raises:
            OnceRunning: somebody else does it now.
            OnceMisuse: it is this caller's to do, and `done` was not called.
        """
        if self._ended:
            return self._result
        match self._reserved.turn:
            case Turn.DONE:
                return self._codec.decode((self._reserved.result or "null").encode())
            case Turn.OTHERS:
                raise OnceRunning(
                    f"key {self._wanted.key!r} is being worked on by {self._reserved.owner}",
                    "there is no result yet",
                    "ask again later, or pass wait_s",
                    owner=self._reserved.owner,
                )
            case Turn.MINE:
                raise OnceMisuse(
                    f"key {self._wanted.key!r} has no result yet",
                    "it is this caller who does it",
                    "call done() with the result first",
                )

    def done(self, result: Any = None, *, connection: object | None = None) -> None:
        """Say that the effect has happened, and keep its result for later callers.

        With `connection` the mark is part of the transaction that is open there: effect and mark are committed
        together, or neither is. May be repeated after an error; the first result stays.

        Raises:
            OnceLost: the lease ran out and another took the key over. Roll your transaction back.
            InvalidPayload, PayloadTooLarge: the result cannot be kept.
        """
        ending = self._ending(result, connection)
        self._settle(run(self._place, ending, self._via(connection)), result)

    async def adone(self, result: Any = None, *, connection: object | None = None) -> None:
        """`done` for async code."""
        ending = self._ending(result, connection)
        self._settle(await arun(self._place, ending, self._via(connection)), result)

    def renew(self) -> None:
        """Let the lease end `stale_s` from now, for an effect that takes longer.

        Raises:
            OnceLost: another took the key over. Stop.
        """
        self._check_mine()
        if not run(self._place, renew_once(self._wanted, self._token), self._connection):
            raise self._lost()

    async def arenew(self) -> None:
        """`renew` for async code."""
        self._check_mine()
        if not await arun(self._place, renew_once(self._wanted, self._token), self._connection):
            raise self._lost()

    def release(self) -> bool:
        """Give the key back without a result: it may be done again at once, by anybody."""
        self._released = True
        return run(self._place, self._releasing(), self._connection)

    async def arelease(self) -> bool:
        """`release` for async code."""
        self._released = True
        return await arun(self._place, self._releasing(), self._connection)

    def _releasing(self) -> Operation[bool]:
        return _giving(self._wanted, self._token)

    def _via(self, connection: object | None) -> object | None:
        return self._connection if connection is None else connection

    def _ending(self, result: Any, connection: object | None) -> Operation[bool]:
        self._check_mine()
        # An effect in a transaction of the caller's is undone with it; any other one stays, marked or not.
        self._happened = self._happened or self._via(connection) is None
        return end_once(self._wanted, self._token, self._codec.encode(result).decode())

    def _check_mine(self) -> None:
        if not self.needed:
            raise OnceMisuse(
                f"key {self._wanted.key!r} is not this caller's to end",
                f"{self._reserved.owner} has it",
                "do the effect only where `needed` is true",
            )

    def _settle(self, ended: bool, result: Any) -> None:
        if not ended:
            raise self._lost()
        self._ended, self._result = True, result

    def _lost(self) -> OnceLost:
        return OnceLost(
            f"key {self._wanted.key!r} is not {self._wanted.owner}'s any more",
            f"its lease of {self._wanted.stale_s:g} s ran out and another took it over, or it was given back",
            "take back what you did if you can; give stale_s the time the effect takes, or renew()",
        )


class Once:
    """What is to be done once for a key: a context manager, a function (`call`) or a decorator. Made by `once`."""

    def __init__(
        self,
        place: Place,
        key: str | Callable[..., str],
        *,
        scope: str,
        fingerprint: Any,
        owner: str | None,
        stale_s: float,
        lifetime_s: float,
        timeout_s: float,
        wait_s: float,
        result_type: Any,
        connection: object | None,
    ) -> None:
        self._place = place
        self._key = key if callable(key) else check_key(key, "the key")
        self._scope = check_key(scope, "the scope")
        self._fingerprint = fingerprint
        self._owner = owner
        self._stale_s = check_seconds(stale_s, "stale_s", STALE_S_MIN)
        self._lifetime_s = check_seconds(lifetime_s, "lifetime_s", 0.0)
        self._timeout_s = check_seconds(timeout_s, "timeout_s", 0.01, 3600.0)
        self._wait_s = check_seconds(wait_s, "wait_s", 0.0)
        self._codec = None if result_type is None else ValueCodec.of(result_type)
        self._connection = connection
        self._entered: OnceRun | None = None

    # --- as a function -----------------------------------------------------------------------------

    def call(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call the function if nobody did so for this key, and return what it returned, this time or then.

        An exception of the function gives the key back and passes through.

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
                _give_back(turn, error)
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
                await _agive_back(turn, error)
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
            _give_back(turn, error)
        elif turn.is_open:
            turn.done()

    async def __aenter__(self) -> OnceRun:
        self._check_free()
        self._entered = await self._abegin(self._wanted((), {}), self._codec or ANYTHING)
        return self._entered

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        turn = self._left()
        if error is not None:
            await _agive_back(turn, error)
        elif turn.is_open:
            await turn.adone()

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
        taking = reserve_once(wanted, token, running.get())

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
            lambda _: run(self._place, _giving(wanted, token)),
        )

    async def _areserve(self, wanted: OnceKey, token: str) -> Reserved:
        taking = reserve_once(wanted, token, running.get())

        async def ask() -> Reserved:
            await asyncio.to_thread(check_tables, self._place)
            return await arun(self._place, taking, self._connection)

        if self._connection is not None:
            return await ask()
        return await awithin(
            self._timeout_s,
            f"{wanted.key!r} is done",
            ask(),
            lambda _: arun(self._place, _giving(wanted, token)),
        )

    def _wanted(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> OnceKey:
        key = check_key(self._key(*args, **kwargs), "the key") if callable(self._key) else self._key
        payload = self._fingerprint(*args, **kwargs) if callable(self._fingerprint) else self._fingerprint
        return OnceKey(
            self._scope,
            key,
            owner_now(self._owner),
            fingerprint_of(payload),
            self._stale_s,
            self._lifetime_s,
        )

    def _codec_of(self, function: Callable[..., Any]) -> ValueCodec:
        """What was declared, else what the function says that it returns."""
        if self._codec is None:
            self._codec = ValueCodec.of(return_annotation(function))
        return self._codec

    def _check_free(self) -> None:
        if self._entered is not None:
            raise OnceMisuse(
                "this `once` is in use already", "one object is one turn at a time", "make one for each use"
            )

    def _left(self) -> OnceRun:
        assert self._entered is not None, "left without having been entered"
        turn, self._entered = self._entered, None
        return turn


def once(
    place: Place,
    key: str | Callable[..., str],
    *,
    scope: str = "once",
    fingerprint: Any = None,
    owner: str | None = None,
    stale_s: float = 300.0,
    lifetime_s: float = 86400.0,
    timeout_s: float = 10.0,
    wait_s: float = 0.0,
    result_type: Any = None,
    connection: object | None = None,
) -> Once:
    """Do something once for a key, whoever asks and however often: the key is taken before the effect.

    A later caller gets the stored result, for `lifetime_s` from the end on. One that comes while it is being done
    waits up to `wait_s`, and is then told so. After a failure the key is free at once. Who crashed in the middle
    holds it for `stale_s`, by the database's clock; the same owner takes it up again before that. The owner is the
    job that this code runs in, else `owner`, else nobody that was there before. `fingerprint` is data that tells
    payloads apart: another one under the same key is refused.

    With `connection` all of it is part of the transaction that is open there.

    Raises, when the key is taken:
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
        stale_s=stale_s,
        lifetime_s=lifetime_s,
        timeout_s=timeout_s,
        wait_s=wait_s,
        result_type=result_type,
        connection=connection,
    )


def _giving(wanted: OnceKey, token: str) -> Operation[bool]:
    return release_once(wanted.scope, wanted.key, token)


def _give_back(turn: OnceRun, error: BaseException) -> None:
    """Free the key after a failure, unless the effect has happened. What fails here must not hide the failure."""
    if turn.happened or not turn.needed:
        return
    try:
        turn.release()
    except FencerowError as second:
        error.add_note(
            f"the key {turn.key!r} could not be given back, it is free when its lease ends: {second}"
        )


async def _agive_back(turn: OnceRun, error: BaseException) -> None:
    if turn.happened or not turn.needed:
        return
    try:
        await turn.arelease()
    except FencerowError as second:
        error.add_note(
            f"the key {turn.key!r} could not be given back, it is free when its lease ends: {second}"
        )
