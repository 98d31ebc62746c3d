"""Building indexes under a lease that a thread renews on a connection of its own: the other is busy for hours."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress

from fencerow.core.schema.building import LEASE_S, Building, Index, build, lost, progress, renew
from fencerow.db.engine import Engine
from fencerow.db.leases import Belief
from fencerow.db.run import Operation, run
from fencerow.db.steady import steady

log = logging.getLogger("fencerow")

Tell = Callable[[str], object]

RENEWALS = 4  # so often within a lease: three may fail before the deadline
LOOK_S = 1.0
JOIN_S = 5.0  # a renewal that hangs is left to itself: it can do nothing but renew this very attempt


def build_kept(
    engine: Engine, ledger: str, indexes: Sequence[Index], work: Building, sent: float, tell: Tell
) -> None:
    """Build what was taken by a statement sent at this `steady()` time. A crash leaves it to the next migrator.

    Raises:
        Busy, SchemaTampered: see `build`. The build is released for whoever comes next.
    """
    lease = BuildLease(engine, ledger, work, sent, tell)

    def answer(request: object) -> object:
        assert isinstance(request, Operation), "a build wakes nobody"
        lease.check()
        return engine.run(request)

    tell(f"building {', '.join(index.name for index in indexes)}")
    try:
        with lease.kept():
            run(build(indexes, work), answer)
    except BaseException:
        with suppress(Exception):  # the first error says more; the lease ends by itself
            engine.run(renew(work, 0.0))
        raise


class BuildLease:
    """Keeps a build ours, and tells how far the server is."""

    def __init__(self, engine: Engine, ledger: str, work: Building, sent: float, tell: Tell) -> None:
        self._engine = engine
        self._ledger = ledger
        self._work = work
        self._tell = tell
        self._told: str | None = None
        self._belief = Belief(LEASE_S, sent)
        self._renewed = sent
        self._stop = threading.Event()

    @contextmanager
    def kept(self) -> Iterator[None]:
        thread = threading.Thread(target=self._keep, name="fencerow-build-lease", daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._stop.set()
            thread.join(JOIN_S)

    def check(self) -> None:
        """Refuse to send anything more once somebody else may have taken over.

        Raises:
            Busy: the lease is lost.
        """
        if self._belief.lost:
            raise lost()

    def _keep(self) -> None:
        """A short build ends before the first look, and costs no connection."""
        with closing(self._engine.keeper(patience_s=LEASE_S / RENEWALS)) as keeper:
            while not self._stop.wait(LOOK_S) and not self._belief.lost:
                try:
                    self._look(keeper)
                except Exception as error:
                    log.warning("the lease of an index's build was not renewed: %s", error)

    def _look(self, keeper: Engine) -> None:
        sent = steady()
        if sent - self._renewed >= LEASE_S / RENEWALS:
            if keeper.run(renew(self._work, LEASE_S)):
                self._belief.renewed(sent)
                self._renewed = sent
            else:
                self._belief.lose()
        told = keeper.run(progress(self._ledger))
        if told is not None and told != self._told:
            self._tell(told)
            self._told = told
