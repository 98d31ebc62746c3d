"""One caller's turn at a key of `once`: whether the effect is its own to do, and what came of it."""

from __future__ import annotations

import logging
from typing import Any, TypeVar

from fencerow.core.answering import answer
from fencerow.core.errors import FencerowError
from fencerow.core.locator import Locator
from fencerow.core.model.value import ValueCodec
from fencerow.core.verb import averb, verb
from fencerow.db.run import Operation, joining
from fencerow.db.strikes import sheltered
from fencerow.guards.lent import arun_back, still_open
from fencerow.guards.once.errors import OnceLost, OnceMisuse, OnceRunning
from fencerow.guards.once.reserving import OnceKey, Reserved, Turn, end_once, release_once, renew_once
from fencerow.located import LocatorProcedure, LocatorVerbs, run

log = logging.getLogger("fencerow.once")

T = TypeVar("T")


@answer
class OnceRun(LocatorVerbs):
    """One caller's run for a key. `needed`: this caller has to do it; else `result` is what the other run returned.

    `owner` is who does it or did it.
    """

    def __init__(
        self,
        place: Locator,
        wanted: OnceKey,
        token: str,
        reserved: Reserved,
        codec: ValueCodec,
        connection: object | None,
    ) -> None:
        super().__init__(place)
        self._wanted = wanted
        self._token = token
        self._reserved = reserved
        self._codec = codec
        self._connection = connection
        self._ended = False
        self._happened = False
        self._released = False
        self._result: Any = None
        self._marked_on: object | None = None  # whose open transaction has the mark

    @property
    def key(self) -> str:
        """What is to be done once."""
        return self._wanted.key

    @property
    def owner(self) -> str:
        """Who has the key now: this caller, or the one that was first."""
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
    def is_marked_by_caller(self) -> bool:
        """Whether the mark is part of a transaction of the caller's, which may have been rolled back since."""
        return self._marked_on is not None

    @property
    def happened(self) -> bool:
        """Whether the effect is known to have happened, even if that could not be stored; then it is not
        tried again."""
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
                    f"key {self._wanted.key!r} belongs to {self._reserved.owner}, who is at work",
                    "there is no result yet",
                    "ask again later, or pass wait_s",
                    owner=self._reserved.owner,
                )
            case Turn.MINE:
                raise OnceMisuse(
                    f"key {self._wanted.key!r} has no result yet",
                    "this caller has to do the effect",
                    "call done() with the result first",
                )

    @verb
    def done(self, result: Any = None, *, connection: object | None = None) -> LocatorProcedure[None]:
        """Say that the effect has happened, and keep its result for later callers.

        With `connection` the mark is part of the transaction that is open there: effect and mark are committed
        together, or neither is. If it was rolled back by the end of the block, the key is released. May be
        repeated after an error; the first result stays.

        Raises:
            UnusableConnection: no transaction is open on `connection`.
            OnceLost: the lease ran out and another took the key over. Roll your transaction back.
            InvalidPayload, PayloadTooLarge: the result cannot be kept.
        """
        ended: bool = yield self._ending(result, connection)
        self._settle(ended, result, connection)

    adone = averb(done)

    @verb
    def renew(self) -> LocatorProcedure[None]:
        """Extend the lease to `stale_s` from now, for an effect that takes longer.

        Raises:
            OnceLost: another took the key over. Stop.
        """
        self._check_mine()
        if not (yield renew_once(self._wanted, self._token)):
            raise self._lost()

    arenew = averb(renew)

    def release(self) -> bool:
        """Release the key without a result: anybody may do it again at once."""
        self._released = True
        return self._given(run(self._place, self._releasing(), self._free_via()))

    async def arelease(self) -> bool:
        """`release` for async code."""
        self._released = True
        return self._given(await arun_back(self._place, self._releasing(), self._free_via()))

    def _run(self, procedure: LocatorProcedure[T], connection: object | None = None) -> T:
        return super()._run(procedure, self._via(connection))

    async def _arun(self, procedure: LocatorProcedure[T], connection: object | None = None) -> T:
        return await super()._arun(procedure, self._via(connection))

    def _given(self, freed: bool) -> bool:
        if freed:  # also where it was marked: that was rolled back
            self._ended, self._marked_on = False, None
        return freed

    def _free_via(self) -> object | None:
        """Where the key is given back: in the caller's transaction while it is open, which may hold the row locked."""
        if self._marked_on is not None and still_open(self._place, self._marked_on):
            return self._marked_on
        return self._connection

    def _releasing(self) -> Operation[bool]:
        return giving(self._wanted, self._token)

    def _via(self, connection: object | None) -> object | None:
        return self._connection if connection is None else connection

    def _ending(self, result: Any, connection: object | None) -> Operation[bool]:
        self._check_mine()
        # An effect in a transaction of the caller's is undone with it; any other one stays, marked or not.
        self._happened = self._happened or self._via(connection) is None
        ending = end_once(self._wanted, self._token, self._codec.encode(result).decode())
        return joining(ending, self._via(connection))

    def _check_mine(self) -> None:
        if not self.needed:
            raise OnceMisuse(
                f"key {self._wanted.key!r} does not belong to this caller",
                f"{self._reserved.owner} has it",
                "do the effect only where `needed` is true",
            )

    def _settle(self, ended: bool, result: Any, connection: object | None) -> None:
        if not ended:
            raise self._lost()
        self._ended, self._result, self._marked_on = True, result, connection

    def _lost(self) -> OnceLost:
        return OnceLost(
            f"key {self._wanted.key!r} is not {self._wanted.owner}'s any more",
            f"its lease of {self._wanted.stale_s:g} s ran out and somebody else took it over, or it was released",
            "undo what you did if you can; let stale_s cover the time that the effect takes, or call renew()",
        )


def giving(wanted: OnceKey, token: str) -> Operation[bool]:
    return release_once(wanted.scope, wanted.key, token)


def give_back(turn: OnceRun, error: BaseException) -> None:
    """Free the key after a failure, unless the effect has happened. What fails here must not hide the failure."""
    if turn.happened or not turn.needed:
        return
    try:
        turn.release()
    except FencerowError as second:
        error.add_note(
            f"the key {turn.key!r} could not be released; it is free when its lease ends: {second}"
        )


async def agive_back(turn: OnceRun, error: BaseException) -> None:
    if turn.happened or not turn.needed:
        return
    try:
        await turn.arelease()
    except FencerowError as second:
        error.add_note(
            f"the key {turn.key!r} could not be released; it is free when its lease ends: {second}"
        )


def free_unmarked(turn: OnceRun) -> None:
    """Give the key back if the mark was rolled back with the caller's transaction, and the effect with it."""
    if turn.is_marked_by_caller:
        try:
            turn.release()
        except FencerowError as error:
            _unknown(turn, error)


async def afree_unmarked(turn: OnceRun) -> None:
    if turn.is_marked_by_caller:
        try:
            await turn.arelease()
        except FencerowError as error:
            _unknown(turn, error)


@sheltered  # a handler of the log has a lock
def _unknown(turn: OnceRun, error: FencerowError) -> None:
    log.warning(
        "whether the mark of key %r was committed was not found out; if not, it is free when its lease ends: %s",
        turn.key,
        error,
    )
