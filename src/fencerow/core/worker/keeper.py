"""The keeper: renews the lease from a thread of its own with a connection of its own.

A blocked event loop or a handler that computes in Python does not stop it. Code that keeps the
interpreter lock for longer than the lease does (one giant regular expression, one giant json.loads):
the lease is then lost, the fence refuses the late result, and such code belongs in a child process.
A renewal that came late for that reason is reported, long before one comes too late.
"""

from __future__ import annotations

import logging
import os
import platform
import threading
import time
from typing import Protocol

import msgspec

from fencerow.core.background.loop import Endurance
from fencerow.core.errors import OutcomeUnknown, Unavailable
from fencerow.core.model.ids import new_id
from fencerow.core.model.wanted import Wanted
from fencerow.core.store import store
from fencerow.core.store.workers import Holding
from fencerow.core.telemetry import Fact, Telemetry
from fencerow.core.worker.lease import Failover, WorkerLease
from fencerow.db.clock import CarriedClock
from fencerow.db.engine import Engine
from fencerow.db.errors.base import line_of
from fencerow.db.steady import steady
from fencerow.db.trouble import is_shortage, is_trouble

log = logging.getLogger("fencerow.worker.keeper")

RETRY_S = 0.5
SIGN_OFF_S = 5.0
REGISTER_TRIES = 5  # at the start, when answers are lost
PATIENCE_S = 1.0  # at least; with a third of the lease two renewals may stay without an answer
LATE_S = 1.0  # beyond what a busy machine does to a thread


class Counterpart(Protocol):
    """What the keeper carries between the worker's row and the worker; called in the keeper's thread."""

    def stated(self) -> str:
        """What this worker does now, as JSON."""
        ...

    def on_renewed(self, holder: str, version: int, wanted: Wanted | None) -> None:
        """What operators want of this worker, with each renewal."""

    def on_holdings(self, holder: str, holdings: list[Holding]) -> None:
        """What the database says this registration runs, read after the last renewal."""

    def on_death(self, holder: str) -> None:
        """Others have declared this registration dead; everything it held is lost."""

    def on_keeper_failed(self, error: BaseException) -> None:
        """The keeper cannot go on."""


def keeper_engine(engine: Engine, lease_s: float) -> Engine:
    """The keeper's own connection: nothing else may make a renewal wait, and one that comes too late is none."""
    return engine.keeper(patience_s=max(PATIENCE_S, lease_s / 3))


class Keeper:
    """Registers the worker, renews its lease, registers again after a death. `engine` is its own; it closes it."""

    def __init__(
        self,
        engine: Engine,
        lease: WorkerLease,
        failover: Failover,
        endurance: Endurance,
        control: Counterpart,
        clock: CarriedClock,
        *,
        name: str,
        info: dict[str, object],
        renew_s: float,
        telemetry: Telemetry,
    ) -> None:
        self._engine = engine
        self._lease = lease
        self._failover = failover
        self._endurance = endurance
        self._control = control
        self._clock = clock
        self._former: str | None = None  # the last registration of this process
        self._open: list[str] = []  # registrations that may be alive: this one, and any whose reply was lost
        self._name = name
        self._info = info
        self._renew_s = renew_s
        self._telemetry = telemetry
        self._signed_off = False
        self._turned_at = time.monotonic()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="fencerow-keeper", daemon=True)

    def start(self) -> None:
        """Register and begin to renew. Blocks for one statement, and a few seconds where answers are lost.

        Raises:
            DatabaseError: the first registration failed; nothing was started.
        """
        self._failover.look(None)
        self._register_first()
        self._thread.start()

    def halt(self) -> None:
        """Renew and register no more; `stop` follows."""
        self._stopped.set()
        self._lease.renew_now()

    def stop(self) -> None:
        """End the registration. What is still held is found by others at their next sweep.

        A thread that is still in a statement then signs off itself when the statement is over, if the process lives
        so long; otherwise the lease runs out.
        """
        self.halt()
        if self._thread.is_alive():
            self._thread.join(self._renew_s + SIGN_OFF_S)
        self._lease.end()
        if self._thread.is_alive():
            log.warning("worker %s has not signed off: the database does not answer", self._name)
        else:
            self._sign_off()

    def silent_s(self) -> float:
        """How long ago its thread began its last turn."""
        return time.monotonic() - self._turned_at

    def _run(self) -> None:
        try:
            while not self._stopped.is_set():
                self._turned_at = time.monotonic()
                self._wait(self._pause_s())
                if not self._stopped.is_set():
                    self._tick()
            self._sign_off()
        except BaseException as error:
            self._control.on_keeper_failed(error)

    def _sign_off(self) -> None:
        """End every registration of this process, and close the connection; once."""
        if self._signed_off:
            return
        self._signed_off = True
        self._lease.end()
        try:
            self._retire_all()
        except Exception as error:
            if not is_trouble(error):
                raise
            log.warning("worker %s could not sign off (%s); its lease will run out", self._name, error)
        finally:
            self._engine.close()

    def _retire_all(self, *, but: str | None = None) -> None:
        for holder in [each for each in self._open if each != but]:
            self._engine.run(store.retire(holder=holder))
            self._open.remove(holder)

    def _wait(self, pause_s: float) -> None:
        """Sleep until the next renewal, and say so when this thread came back late."""
        began, used_s = time.monotonic(), time.process_time()
        self._lease.hurried.wait(pause_s)
        self._lease.hurried.clear()
        late_s = time.monotonic() - began - pause_s
        if late_s > LATE_S:
            self._telemetry.counters.add("keeper_late")
            log.warning(
                "the lease is renewed %.1f s late: %s", late_s, _cause(late_s, time.process_time() - used_s)
            )

    def _pause_s(self) -> float:
        return self._renew_s if self._lease.holds() else min(RETRY_S, self._renew_s)

    def _tick(self) -> None:
        try:
            holder = self._lease.holder
            # Before the renewal, which would write over what tells that the database has gone back.
            if self._failover.look(holder) and holder is not None:
                self._engine.run(store.describe_worker(holder=holder, info=self._described()))
            if holder is None:
                self._register()
            elif not self._renew(holder):
                log.error("worker %s was declared dead by others; it registers again", self._name)
                self._lease.end()
                self._open.remove(holder)
                self._control.on_death(holder)
                self._register()
            else:
                self._control.on_holdings(holder, self._engine.run(store.holdings(holder=holder)))
                self._retire_all(but=holder)
            self._endurance.recovered()
        except Exception as error:
            if not is_trouble(error) and not is_shortage(error):
                raise
            if (spent := self._endurance.met(error)) is not None:
                raise spent from error
            self._lease.stumbled()
            self._telemetry.counters.add("renewal_failures")
            self._telemetry.emit(Fact.LOOP_ERROR, loop="keeper", error=line_of(error))
            log.warning("worker %s could not renew its lease: %s", self._name, error)

    def _register_first(self) -> None:
        """A lost answer is no reason to end: another id is as good. The row that may be there holds nothing, and is
        declared dead when its lease has run out."""
        for left in reversed(range(REGISTER_TRIES)):
            try:
                self._register()
                return
            except OutcomeUnknown as error:
                if not left:
                    raise
                log.warning("worker %s registers under another id: %s", self._name, error)
                self._stopped.wait(RETRY_S)

    def _register(self) -> None:
        sent = steady()
        holder = new_id()
        self._open.append(holder)  # before the statement: its reply may be lost
        try:
            registered = self._engine.run(
                store.register(
                    holder=holder,
                    name=self._name,
                    host=platform.node(),
                    pid=os.getpid(),
                    info=self._described(),
                    lease_s=self._lease.lease_s,
                    stated=self._control.stated(),
                    former=self._former,
                )
            )
        except Unavailable:
            self._open.remove(holder)  # it was never reached
            raise
        # A lost reply makes the runner say so with an error; an id that is taken is a fault of the id maker.
        assert registered, "a fresh worker id was already in use"
        self._lease.begin(holder, sent)
        self._failover.registered()
        self._former = holder

    def _described(self) -> str:
        """What the worker's row tells operators."""
        return msgspec.json.encode({**self._info, **self._failover.described()}).decode()

    def _renew(self, holder: str) -> bool:
        sent = steady()
        renewed = self._engine.run(store.renew(holder=holder, stated=self._control.stated()))
        if renewed is None:
            return False
        self._lease.renewed(sent, renewed.at_us)
        self._clock.read(sent, renewed.at_us)
        self._failover.renewed(sent, renewed.at_us)
        self._telemetry.emit(Fact.RENEWED, worker=holder, duration_s=steady() - sent)
        self._control.on_renewed(holder, renewed.version, renewed.wanted)
        return True


def _cause(late_s: float, used_s: float) -> str:
    """Why the keeper's thread did not run: this process computed meanwhile, as far as it was let, or it did not."""
    if used_s > late_s / 10:
        return (
            "code here keeps the interpreter lock (one long regular expression, one huge json.loads), or the machine "
            "is overloaded; run such a job in a child process, or all jobs here will lose their lease"
        )
    return "this process was stopped for a while"
