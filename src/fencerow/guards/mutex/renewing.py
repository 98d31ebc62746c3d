"""The renewer: one thread for all mutexes that a process holds in one database, whether sync or async code took them.

A blocked event loop does not stop it, nor does a handler that computes, nor another database that is away. It has
one connection of its own, opened when the first renewal is due: a mutex that is held for a moment costs nothing here.
It ends when nothing is held.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from fencerow.db.engine import Engine
from fencerow.db.forks import MadeAnew
from fencerow.db.run import Operation
from fencerow.db.steady import steady
from fencerow.db.strikes import sheltered
from fencerow.db.trouble import is_trouble
from fencerow.guards.mutex.hold import TAKEN, Hold
from fencerow.guards.mutex.taking import TakeInFlight

log = logging.getLogger("fencerow.mutex")

THREAD = "fencerow-mutexes"  # the name of the renewing thread
TICK_S = 0.05  # far below the shortest pause between two renewals
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
    asked: TakeInFlight | None = (
        None  # while more may come of it, "there is nothing to give back" is said too early
    )
    pause_s: float = TICK_S

    @property
    def is_over(self) -> bool:
        """Whether nobody needs it any more."""
        return self.hold.ended if self.hold is not None else steady() > self.until


class Renewer:
    """Renews what this process holds in one database. Safe from any thread.

    Nobody but its own thread ever takes a lock here, for the reason told at `Hold`: what others want lies in a deque.
    """

    def __init__(self) -> None:
        self._wanted: deque[Errand] = deque()
        self._thread: threading.Thread | None = None

    def keep(self, hold: Hold) -> None:
        """Renew it from now on, until it is lost or has ended."""
        self._want(Errand(steady() + hold.renew_s, hold.engine, hold=hold))

    def release_later(
        self, engine: Engine, release: Operation[bool], within_s: float, *, asked: TakeInFlight | None = None
    ) -> None:
        """Give back what could not be given back at once; after `within_s` seconds it is stale anyway.

        `asked`: the take that may have brought it, and may bring it yet.
        """
        now = steady()
        self._want(Errand(now, engine, release=release, until=now + within_s, asked=asked))

    @sheltered  # a new thread is waited for until it has begun
    def _want(self, errand: Errand) -> None:
        self._wanted.append(errand)
        # In this order: the thread that ends says so first, and looks once more then. Should two begin at once,
        # they share the work.
        thread = self._thread
        if thread is None or not thread.is_alive():
            thread = threading.Thread(target=Round(self._wanted, self._leaving).run, name=THREAD, daemon=True)
            self._thread = thread
            thread.start()

    def _leaving(self) -> None:
        self._thread = None


class Round:
    """What one thread of the renewer does, from the first errand until there is none. Only that thread is in here."""

    def __init__(self, wanted: deque[Errand], leaving: Callable[[], None]) -> None:
        self._wanted = wanted
        self._leaving = leaving
        self._errands: list[Errand] = []
        self._lines: dict[int, Engine] = {}  # a connection of its own to each database

    def run(self) -> None:
        """Do what is wanted until nothing is."""
        try:
            while self._looked():
                for errand in [each for each in self._errands if each.due <= steady()]:
                    self._errands.remove(errand)
                    if not errand.is_over:
                        self._do(errand)
                time.sleep(TICK_S)
        except BaseException as error:
            log.exception("the renewer of mutexes broke")
            for errand in self._errands:
                if errand.hold is not None:
                    errand.hold.lose(f"its renewer broke: {error!r}")
            raise
        finally:
            for engine in self._lines.values():
                _closed(engine)

    def _looked(self) -> bool:
        """Take up what is wanted; false when there is nothing, and the thread may go."""
        self._errands = [each for each in self._errands if not each.is_over]
        if not self._errands and not self._wanted:
            self._leaving()
        while self._wanted:
            try:
                self._errands.append(self._wanted.popleft())
            except IndexError:  # another one has taken it
                break
        self._close_idle_lines()
        return bool(self._errands)

    def _close_idle_lines(self) -> None:
        needed = {id(errand.engine) for errand in self._errands}
        for known in self._lines.keys() - needed:
            _closed(self._lines.pop(known))

    def _do(self, errand: Errand) -> None:
        try:
            again_s = self._renewed(errand.hold) if errand.hold is not None else self._released(errand)
        except Exception as error:
            if is_trouble(error):
                log.warning("a mutex could not be renewed or released: %s", error)
            else:
                log.exception("a mutex could not be renewed or released")
            again_s = AGAIN_S if errand.hold is None else min(AGAIN_S, errand.hold.stale_s / 20)
        if errand.hold is not None and errand.hold.lost:
            log.warning("%s", errand.hold.loss())
        elif again_s is not None:
            errand.due = steady() + again_s
            self._errands.append(errand)

    def _renewed(self, hold: Hold) -> float | None:
        """Renew one; returns after how many seconds to do so again, None when it is over."""
        if not hold.is_held:
            return None
        sent = steady()
        renewal = msgspec.structs.replace(hold.renewal(), patience_s=max(PATIENCE_S, hold.renew_s))
        if not self._line(hold.engine).run(renewal):
            hold.lose(TAKEN)
            return None
        hold.renewed(sent)
        return max(0.0, sent + hold.renew_s - steady())

    def _released(self, errand: Errand) -> float | None:
        """Give one back; returns after how many seconds to try again, None when it is done."""
        assert errand.release is not None
        # Asked before the look: what is over by then, the look finds.
        may_come = errand.asked is not None and errand.asked.may_come
        if self._line(errand.engine).run(errand.release) or not may_come:
            return None
        errand.pause_s = min(AGAIN_S, errand.pause_s * 2)
        return errand.pause_s

    def _line(self, engine: Engine) -> Engine:
        if id(engine) not in self._lines:
            self._lines[id(engine)] = engine.keeper(patience_s=PATIENCE_S)
        return self._lines[id(engine)]


def _closed(engine: Engine) -> None:
    """What goes wrong at the end of a connection must not end the renewals on all others."""
    try:
        engine.close()
    except Exception:
        log.warning("a connection of the renewer could not be closed", exc_info=True)


class Renewers(MadeAnew):
    """One for each database: while one does not answer, mutexes in another are renewed all the same."""

    def _forget(self) -> None:
        self._of: dict[int, Renewer] = {}

    def of(self, engine: Engine) -> Renewer:
        """The one for this database."""
        self._check_process()
        return self._of.setdefault(id(engine), Renewer())


renewer = Renewers().of
