"""What begins and ends with a hold: its renewal, what the code holds at once, and giving it back whatever happens."""

from __future__ import annotations

import logging
import weakref
from typing import Any

import msgspec

import fencerow.guards.mutex.mutexes as mutexes
from fencerow.core.errors import Busy, LeaseLost, Unavailable
from fencerow.core.model.control import Snooze
from fencerow.core.store.running import Running, running
from fencerow.db.engine import Engine
from fencerow.db.run import Operation
from fencerow.db.strikes import sheltered
from fencerow.db.trouble import is_trouble
from fencerow.guards.mutex.errors import MutexBusy
from fencerow.guards.mutex.hold import Hold
from fencerow.guards.mutex.nesting import entered
from fencerow.guards.mutex.renewing import renewer
from fencerow.guards.mutex.taking import MutexTake, TakeInFlight
from fencerow.guards.mutex.terms import Terms

log = logging.getLogger("fencerow.mutex")

RELEASE_PATIENCE_S = 2.0

NOTHING_TAKEN = (MutexBusy, Snooze, LeaseLost, Unavailable, Busy)


def hold_of(engine: Engine, terms: Terms, taken: MutexTake, holder: str, attempt: Running | None) -> Hold:
    """The hold of a take that came about."""
    return Hold(
        engine,
        terms.key,
        holder=holder,
        token=taken.token,
        stale_s=terms.stale_s,
        sent=taken.sent,
        fence=None if attempt is None else attempt.still_held,
    )


def keep(owner: object, hold: Hold) -> weakref.finalize[Any, Any]:
    """Renew it from now on. Returns what is to be detached when the owner gives it back.

    An owner that is forgotten without a release does not have it renewed for ever.
    """
    entered(hold)
    finalizer = weakref.finalize(owner, _forgotten, hold)
    finalizer.atexit = False
    renewer(hold.engine).keep(hold)
    return finalizer


def give_up(engine: Engine, terms: Terms, holder: str, asked: TakeInFlight, error: BaseException) -> None:
    """A take was broken off, and nobody may know whether it came about: then it is taken back in the background."""
    if not isinstance(error, NOTHING_TAKEN):
        abandon = mutexes.abandon(terms.key, holder=holder)
        renewer(engine).release_later(engine, abandon, terms.stale_s, asked=asked)


def give_back(hold: Hold) -> bool:
    """Give back what has ended here; false when it was not ours any more. After an error others do it later."""
    try:
        _refuse_in_vain(hold)
        return hold.engine.run(_soon(hold))
    except BaseException:
        _later(hold)
        raise


async def agive_back(hold: Hold) -> bool:
    """`give_back` for async code."""
    try:
        _refuse_in_vain(hold)
        return await hold.engine.arun(_soon(hold))
    except BaseException:
        _later(hold)
        raise


def left_behind(trouble: Exception, late: bool) -> bool:
    """The block is over and the database could not be told: harmless, unless the mutex was late already."""
    if not is_trouble(trouble):
        raise trouble
    log.info("a mutex is released in the background: %s", trouble)
    return not late


def _soon(hold: Hold) -> Operation[bool]:
    # Past that, it goes on in the background: on SQLite this process's own transaction may hold the file.
    return msgspec.structs.replace(hold.release(), patience_s=RELEASE_PATIENCE_S)


def _refuse_in_vain(hold: Hold) -> None:
    """Where this very handler keeps all other writers out, a release would wait for what waits for it."""
    attempt = running.get()
    if attempt is not None and attempt.keeps_out(hold.engine):
        raise Busy(
            f"the mutex {hold.key!r} is released when job.transaction() has been committed",
            "SQLite has one writer at a time, which is that transaction",
            "to have it free before, leave its block before the transaction begins",
        )


def _later(hold: Hold) -> None:
    renewer(hold.engine).release_later(hold.engine, hold.release(), hold.stale_s)


@sheltered  # a strike that lands in a callback of the interpreter is dropped, and nobody calls this a second time
def _forgotten(hold: Hold) -> None:
    log.warning("the mutex %r was never released: its object is gone, so it is released now", hold.key)
    hold.end()
    if hold.is_mine:
        _later(hold)
