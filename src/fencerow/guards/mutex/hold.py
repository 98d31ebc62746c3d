"""What a process believes of a mutex it took, by the steady clock of its own host.

The database decides who holds a mutex; this only makes the holder stop before others may start (`db/leases.py`).
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable

import fencerow.guards.mutex.mutexes as mutexes
from fencerow.db.engine import Engine
from fencerow.db.leases import Belief
from fencerow.db.run import Operation
from fencerow.db.steady import steady
from fencerow.guards.mutex.errors import MutexLost
from fencerow.guards.mutex.mutexes import Fence

LATE = "it was not renewed in time"
TAKEN = "it was taken over, freed by an operator, or the attempt of its job is over"
RENEWALS = 4  # so often within stale_s: three may fail before the deadline


class Hold:
    """One take of a mutex. Safe from any thread.

    `fence` is that of the attempt for which it was taken, if one did: with the attempt the mutex ends too.

    Nothing here waits for a lock: an attempt that must end has an exception raised in its thread at any point, and a
    lock that it left closed would stop the renewal of all other mutexes. Each field is written whole.
    """

    def __init__(
        self,
        engine: Engine,
        key: str,
        *,
        holder: str,
        token: int,
        stale_s: float,
        sent: float,
        fence: Fence | None,
    ) -> None:
        self.engine = engine
        self.key = key
        self.holder = holder
        self.token = token
        self.stale_s = stale_s
        self._fence = fence
        self._pid = os.getpid()
        self._belief = Belief(stale_s, sent)
        self._ended = False  # given back, or never ours to renew again
        self._reason: str | None = None
        self._standing = threading.Lock()  # closed while it stands: who waits for the end waits here
        self._standing.acquire()
        self._listeners: list[Callable[[], None]] = []

    # --- what it is ------------------------------------------------------------------------------

    @property
    def deadline(self) -> float:
        """The `steady()` time until which it may be relied upon."""
        return self._belief.deadline

    @property
    def renew_s(self) -> float:
        """The pause between two renewals."""
        return self.stale_s / RENEWALS

    @property
    def lost(self) -> bool:
        """Whether it may be somebody else's by now. It never becomes untrue again."""
        if self._reason is None and not self._ended and self._belief.lost:
            self._reason = LATE
        return self._reason is not None

    @property
    def is_held(self) -> bool:
        """Whether it may be relied upon now."""
        return not self._ended and not self.lost

    @property
    def ended(self) -> bool:
        """Whether it is given back, or left alone."""
        return self._ended

    @property
    def is_mine(self) -> bool:
        """Whether this process took it: a fork's child has only a copy."""
        return self._pid == os.getpid()

    def check(self) -> None:
        """Pass if it may be relied upon now.

        Raises:
            MutexLost: it may be somebody else's by now.
        """
        if self.lost:
            raise self.loss()

    def loss(self) -> MutexLost:
        """The error that tells the loss."""
        return MutexLost(
            f"the mutex {self.key!r} (token {self.token}) was lost: {self._reason or TAKEN}",
            f"others may take it {self.stale_s:g} s after its last renewal",
            "stop what needs it; guard writes with the token, and raise stale_s if this process may pause",
        )

    def wait_lost(self, timeout_s: float) -> bool:
        """Wait until it is lost, at most so long; returns whether it is."""
        until = steady() + timeout_s
        while not self.lost and not self._ended and (now := steady()) < until:
            # Whoever comes through lets the next one through.
            if self._standing.acquire(timeout=max(0.0, min(until, self.deadline) - now)):
                self._standing.release()
                break
        return self.lost

    def on_lost(self, call: Callable[[], None]) -> None:
        """Call back when the database says that it is lost, in the renewing thread. The deadline needs no call."""
        self._listeners.append(call)

    # --- what happens to it ----------------------------------------------------------------------

    def renewed(self, sent: float) -> None:
        """A renewal that was sent at this `steady()` time went well."""
        if self._reason is None:
            self._belief.renewed(sent)

    def lose(self, reason: str) -> None:
        """It is not to be relied upon any more."""
        if self._ended or self._reason is not None:
            return
        self._reason = reason
        self._let_go()
        for call in tuple(self._listeners):
            call()

    def end(self) -> None:
        """It is given back, or left alone: nobody needs to hear of it any more."""
        self._ended = True
        self._let_go()

    def _let_go(self) -> None:
        try:
            self._standing.release()
        except RuntimeError:
            pass  # it was open already

    def renewal(self) -> Operation[bool]:
        """What keeps it."""
        if self._fence is None:
            return mutexes.renew(self.key, holder=self.holder, token=self.token)
        return mutexes.renew_in_job(self.key, self._fence, holder=self.holder, token=self.token)

    def release(self) -> Operation[bool]:
        """What gives it back."""
        return mutexes.release(self.key, holder=self.holder, token=self.token)
