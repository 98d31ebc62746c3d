"""`DedupeWindow`: the first of equal things within some seconds is new, and the others get what it came to."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Any

from fencerow.core.answering import answer
from fencerow.core.errors import Busy, FencerowError
from fencerow.core.locator import Locator, acheck_tables, check_tables
from fencerow.core.model.ids import new_id
from fencerow.core.model.seconds import Seconds
from fencerow.db.run import Operation, Steps, execute, joining, operation
from fencerow.db.text import check_text
from fencerow.guards.bounded import awithin, within
from fencerow.guards.checked import check_key, check_seconds, fingerprint_of
from fencerow.located import arun, run

ROUNDS_MAX = 20
VALUE_LENGTH_MAX = 1024


@dataclass(frozen=True, slots=True)
class Admitted:
    """The answer to an admission. `value` is the caller's own if it is new, else that of the first one."""

    is_new: bool
    value: str
    key: str
    token: str


@operation(repeatable=True)
def admit(name: str, key: str, value: str, token: str, *, window_s: float) -> Steps[Admitted]:
    """Be the first of a window, or learn who was. May be repeated with the same token."""
    for _ in range(ROUNDS_MAX):
        # Looked at first: an upsert that is refused locks the row all the same, and its commit waits for the disk.
        rows = yield from execute("read_admitted", name=name, key=key)
        if rows and not rows[0][2]:
            first_value, first_token, _over = rows[0]
            return Admitted(str(first_token) == token, str(first_value), key, str(first_token))
        if (yield from execute("admit", name=name, key=key, value=value, token=token, window_s=window_s)):
            return Admitted(True, value, key, token)
    raise Busy(
        f"key {key!r} of window {name!r} changed hands too often",
        f"{ROUNDS_MAX} rounds were lost to others",
        "ask again",
    )


@operation(alone=True, repeatable=True, patience_s=1.0)
def withdraw_admitted(name: str, key: str, token: str) -> Steps[bool]:
    """Take an admission back; false means that it is not there any more."""
    return bool((yield from execute("withdraw_admitted", name=name, key=key, token=token)))


@operation(alone=True)
def purge_windows(*, limit: int) -> Steps[int]:
    """Forget what was admitted in windows that are over; returns how many."""
    return len((yield from execute("purge_windows", limit=limit)))


@answer
class DedupeWindow:
    """Tells the first of equal things from its duplicates, for `window_s` seconds of the database's clock.

    The admission is written before the work that it admits, and withdrawn if that work fails. With
    `connection` it is part of the transaction that is open there: others with the same key wait for its end.
    """

    def __init__(self, place: Locator, name: str, window_s: Seconds, *, timeout_s: Seconds = 10.0) -> None:
        self._place = place
        self._name = check_key(name, "the window's name")
        self._window_s = check_seconds(window_s, "window_s", 0.001)
        self._timeout_s = check_seconds(timeout_s, "timeout_s", 0.01, 3600.0)

    def admit(
        self, key: str, value: str, *, content: Any = None, connection: object | None = None
    ) -> Admitted:
        """Be the first within the window, or get the first one's value, such as the id of its job.

        Name the target in the key: the same thing for another target is new there. `content` is data that
        counts as part of the key, of any size.

        Raises:
            Unavailable, Busy: the database did not answer within `timeout_s`. Do not go on without the answer.
            UnusableConnection: no transaction is open on `connection`.
            InvalidInput: the key or the value is empty, too long, or holds what cannot be kept.
        """
        admission = self._admission(key, value, content)
        if connection is not None:
            check_tables(self._place)
            return run(self._place, joining(admission, connection), connection)
        return within(
            self._timeout_s,
            f"{key!r} is new",
            lambda: self._asked(admission),
            self.withdraw,
        )

    async def aadmit(
        self, key: str, value: str, *, content: Any = None, connection: object | None = None
    ) -> Admitted:
        """`admit` for async code."""
        admission = self._admission(key, value, content)
        if connection is not None:
            await acheck_tables(self._place)
            return await arun(self._place, joining(admission, connection), connection)
        return await awithin(
            self._timeout_s,
            f"{key!r} is new",
            self._aasked(admission),
            self.awithdraw,
        )

    def withdraw(self, admitted: Admitted, *, connection: object | None = None) -> bool:
        """Take an admission back because its work could not be done: the next one is new.

        Only this very admission is removed. False means that it was a duplicate's, or that a later one has
        replaced it.
        """
        return admitted.is_new and run(self._place, self._withdrawal(admitted), connection)

    async def awithdraw(self, admitted: Admitted, *, connection: object | None = None) -> bool:
        """`withdraw` for async code."""
        return admitted.is_new and await arun(self._place, self._withdrawal(admitted), connection)

    @contextmanager
    def admitting(self, key: str, value: str, *, content: Any = None) -> Iterator[Admitted]:
        """`admit` for a block: an exception in it withdraws a new admission and passes through."""
        admitted = self.admit(key, value, content=content)
        try:
            yield admitted
        except BaseException as error:
            try:
                self.withdraw(admitted)
            except FencerowError as second:
                _note(error, key, second)
            raise

    @asynccontextmanager
    async def aadmitting(self, key: str, value: str, *, content: Any = None) -> AsyncIterator[Admitted]:
        """`admitting` for async code."""
        admitted = await self.aadmit(key, value, content=content)
        try:
            yield admitted
        except BaseException as error:
            try:
                await self.awithdraw(admitted)
            except FencerowError as second:
                _note(error, key, second)
            raise

    def _asked(self, admission: Operation[Admitted]) -> Admitted:
        check_tables(self._place)
        return run(self._place, admission)

    async def _aasked(self, admission: Operation[Admitted]) -> Admitted:
        await acheck_tables(self._place)
        return await arun(self._place, admission)

    def _admission(self, key: str, value: str, content: Any) -> Operation[Admitted]:
        check_key(key, "the key")
        check_text(value, "the value", VALUE_LENGTH_MAX)
        whole_key = key if content is None else f"{_short(key)}#{fingerprint_of(content)}"
        return admit(self._name, whole_key, value, new_id(), window_s=self._window_s)

    def _withdrawal(self, admitted: Admitted) -> Operation[bool]:
        return withdraw_admitted(self._name, admitted.key, admitted.token)


def _short(key: str) -> str:
    """A key that leaves room for what is added to it."""
    return key if len(key) <= 128 else "sha256:" + hashlib.sha256(key.encode()).hexdigest()


def _note(error: BaseException, key: str, second: FencerowError) -> None:
    error.add_note(
        f"the admission of {key!r} could not be withdrawn, it stands until its window ends: {second}"
    )
