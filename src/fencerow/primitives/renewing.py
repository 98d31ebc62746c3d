"""The renewer: one thread for all mutexes that a process holds, whether sync or async code took them.

A blocked event loop does not stop it, nor does a handler that computes. It has one connection of its own for each
database, opened when the first renewal is due, so a mutex that is held for a moment costs nothing here. It ends when
nothing is held.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from fencerow.db.engine import Engine
from fencerow.db.statement import Operation
from fencerow.db.steady import steady
from fencerow.db.trouble import is_trouble
from fencerow.primitives.hold import TAKEN, Hold

log = logging.getLogger("fencerow.mutex")

LINGER_S = 0.05  # after the last one, since the next often comes at once
AGAIN_S = 0.5  # after a fault; sooner where stale_s is short
PATIENCE_S = 0.5  # at least, of one statement


@dataclass(eq=False)
class Errand:
    """Something to be done at a `steady()` time: renew a hold, or give one back that could not be at once."""

    due: float
    engine: Engine
    hold: Hold | None = None
    release: Operation[bool] | None = None
    until: float = 0.0
    insists: bool = False  # "there is nothing to give back" may be said too early
    pause_s: float = 0.05


class Line:
    """A connection of the renewer's own to one database. Closed when the last one who uses it leaves."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine.keeper(patience_s=PATIENCE_S)
        self.users = 0


class Renewer:
    """Renews what this process holds. Safe from any thread."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._errands: list[Errand] = []
        self._lines: dict[int, tuple[Engine, Line]] = {}
        self._thread: threading.Thread | None = None

    def keep(self, hold: Hold) -> None:
        """Renew it from now on, until it is lost or `forget` is called."""
        self._add(Errand(steady() + hold.renew_s, hold.engine, hold=hold))

    def forget(self, hold: Hold) -> None:
        """Renew it no more."""
        with self._changed:
            self._errands = [each for each in self._errands if each.hold is not hold]
            self._changed.notify_all()

    def release_later(
        self, engine: Engine, release: Operation[bool], within_s: float, *, insists: bool = False
    ) -> None:
        """Give back what could not be given back at once; after `within_s` seconds it is stale anyway.

        `insists`: what is to be given back may yet be on its way to the database.
        """
        now = steady()
        self._add(Errand(now, engine, release=release, until=now + within_s, insists=insists))

    @contextmanager
    def line(self, engine: Engine) -> Iterator[Engine]:
        """The connection of the renewer's own to this database."""
        with self._changed:
            if id(engine) not in self._lines:
                self._lines[id(engine)] = (engine, Line(engine))
            line = self._lines[id(engine)][1]
            line.users += 1
            self._run_thread()  # which closes it
        try:
            yield line.engine
        finally:
            with self._changed:
                line.users -= 1

    # --- the thread --------------------------------------------------------------------------------

    def _add(self, errand: Errand) -> None:
        with self._changed:
            self._errands.append(errand)
            self._run_thread()
            self._changed.notify_all()

    def _run_thread(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="fencerow-mutexes", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        try:
            while (errand := self._next()) is not None:
                self._do(errand)
        except BaseException as error:
            log.exception("the renewer of mutexes broke")
            self._lose_all(f"the renewer broke: {error!r}")
            raise

    def _next(self) -> Errand | None:
        """Wait for the next errand and take it; None when there is nothing left, and the thread is over."""
        with self._changed:
            while True:
                if not self._errands:
                    if self._changed.wait(LINGER_S) or self._errands or self._in_use():
                        continue
                    self._thread = None
                    self._close_lines()
                    return None
                errand = min(self._errands, key=lambda each: each.due)
                wait_s = errand.due - steady()
                if wait_s <= 0:
                    self._errands.remove(errand)
                    return errand
                self._changed.wait(wait_s)

    def _do(self, errand: Errand) -> None:
        try:
            again_s = self._renewed(errand.hold) if errand.hold is not None else self._released(errand)
        except Exception as error:
            if is_trouble(error):
                log.warning("a mutex could not be renewed or given back: %s", error)
            else:
                log.exception("a mutex could not be renewed or given back")
            again_s = AGAIN_S if errand.hold is None else min(AGAIN_S, errand.hold.stale_s / 20)
        if errand.hold is not None and errand.hold.lost:
            log.warning("%s", errand.hold.loss())
        elif again_s is not None:
            self._again(errand, steady() + again_s)

    def _again(self, errand: Errand, due: float) -> None:
        with self._changed:
            if errand.hold.is_held if errand.hold is not None else due < errand.until:
                errand.due = due
                self._errands.append(errand)

    def _renewed(self, hold: Hold) -> float | None:
        """Renew one; returns after how many seconds to do so again, None when it is over."""
        if not hold.is_held:
            return None
        sent = steady()
        renewal = replace(hold.renewal(), patience_s=max(PATIENCE_S, hold.renew_s))
        with self.line(hold.engine) as engine:
            kept = engine.run(renewal)
        if not kept:
            hold.lose(TAKEN)
            return None
        hold.renewed(sent)
        return max(0.0, sent + hold.renew_s - steady())

    def _released(self, errand: Errand) -> float | None:
        """Give one back; returns after how many seconds to try again, None when it is done."""
        assert errand.release is not None
        with self.line(errand.engine) as engine:
            done = engine.run(errand.release)
        if done or not errand.insists:
            return None
        errand.pause_s = min(AGAIN_S, errand.pause_s * 2)
        return errand.pause_s

    def _lose_all(self, reason: str) -> None:
        with self._changed:
            errands, self._errands = self._errands, []
            self._thread = None
        for errand in errands:
            if errand.hold is not None:
                errand.hold.lose(reason)

    def _in_use(self) -> bool:
        return any(line.users for _, line in self._lines.values())

    def _close_lines(self) -> None:
        for _, line in self._lines.values():
            line.engine.close()
        self._lines.clear()


_renewer = Renewer()


def renewer() -> Renewer:
    """The one of this process."""
    return _renewer


def _after_fork() -> None:
    """The thread did not come along, and what the parent holds is the parent's."""
    global _renewer
    _renewer = Renewer()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
