"""The one place through which every action of a handler goes: it asks the director, and tells how it went.

Waiting here stops the whole process, as a pause of the machine would: a handler is a process of its own.
"""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from fencerow_proof.check.kinds import Action, Kind
from fencerow_proof.check.places import Places
from fencerow_proof.check.wire import After, Before, Busy, Channel, Fail, Go, Seen
from fencerow_proof.sql import Meaning, meaning_of

PLANTED = "planted by fencerow check: what this action depends on is down"


class UndeclaredEffect(PermissionError):
    """What a handler meets that writes a file or starts a program where that is refused."""


class Seam:
    """What the drivers' patches call. Nothing passes through it before the handler starts and after it has ended."""

    def __init__(self, channel: Channel, places: Places, ours: tuple[str, ...]) -> None:
        self.places = places
        self._ours = ours  # what the names of our own tables begin with
        self._channel = channel
        self._asking = threading.RLock()  # one question at a time; the answer is for whoever asked
        self._numbers = itertools.count()
        self._sessions = itertools.count(1)
        self._inside = threading.local()
        self.is_open = False

    def session(self) -> int:
        """A number for a connection that was just made."""
        return next(self._sessions)

    @contextmanager
    def statement(
        self, text: str, driver: str, session: int, backend: int | None, fail: Callable[[], None]
    ) -> Iterator[None]:
        """Around a statement: held up before it, told after it. `fail` raises as the driver would."""
        action = self.asked(text, driver, session, backend)
        if action is None:
            yield
            return
        if not self.may_go(action):
            try:
                fail()
            except BaseException as error:
                self.over(action, error)
                raise
        try:
            yield
        except BaseException as error:
            self.over(action, error)
            raise
        self.over(action, None)

    def asked(self, text: str, driver: str, session: int, backend: int | None) -> Action | None:
        """The action that a statement is, or None when nobody else can notice it."""
        if not self.is_open:
            return None
        meaning = meaning_of(text)
        if meaning.kind is Kind.SETTING or self._is_housekeeping(meaning):
            return None
        return Action(
            next(self._numbers),
            meaning.kind,
            text.strip(),
            self.places.here(),
            driver,
            session,
            backend,
            None,
            list(meaning.reads),
            list(meaning.writes),
        )

    def outside(self, kind: Kind, text: str, key: str | None = None) -> Action | None:
        """An action that leaves the database."""
        if not self.is_open:
            return None
        return Action(next(self._numbers), kind, text, self.places.here(), "", key=key)

    def may_go(self, action: Action) -> bool:
        """Wait for leave; false when the action shall fail."""
        with self._asking, self._quiet():
            self._channel.send(Before(action))
            return self._answered()

    def over(self, action: Action, error: BaseException | None) -> None:
        with self._asking, self._quiet():
            self._channel.send(
                After(action.number, None if error is None else f"{type(error).__name__}: {error}")
            )

    def may_try_again(self) -> bool:
        """The SQLite file is locked: wait until somebody else went on; false to give up."""
        with self._asking, self._quiet():
            self._channel.send(Busy())
            return self._answered()

    def see(self, kind: Kind, text: str) -> None:
        """Tell of something that nobody declared; a file write is waited with like a statement.

        Raises:
            UndeclaredEffect: the director refuses it.
        """
        if getattr(self._inside, "now", False):
            return
        action = self.outside(kind, text)
        if action is None:
            return
        if kind is Kind.SOCKET:
            with self._asking, self._quiet():
                self._channel.send(Seen(action))
            return
        error = None if self.may_go(action) else UndeclaredEffect(f"{kind} {text} is refused here: allow it")
        self.over(action, error)
        if error is not None:
            raise error

    def _is_housekeeping(self, meaning: Meaning) -> bool:
        """Looking at our own tables, or making them with a new connection: nothing that a handler does."""
        if meaning.kind not in (Kind.READ, Kind.SCHEMA):
            return False
        return all(table.startswith(self._ours) for table in (*meaning.reads, *meaning.writes))

    def _answered(self) -> bool:
        match self._channel.heard_from_director():
            case Go():
                return True
            case Fail():
                return False
            case _:
                os._exit(1)  # the director is gone, or has no more use for this run

    @contextmanager
    def _quiet(self) -> Iterator[None]:
        """What we do here ourselves is no action."""
        self._inside.now = True
        try:
            yield
        finally:
            self._inside.now = False
