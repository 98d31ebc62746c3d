"""What a remote client and its handles stand on: who runs their procedures."""

from __future__ import annotations

from typing import TypeVar

from fencerow.core.errors import FencerowError
from fencerow.core.errors.bare import bare
from fencerow.db.blocking import refuse_in_loop
from fencerow.db.run import arun, run
from fencerow.web.remote.exchange import Exchange, Remote, Reply, asking
from fencerow.web.remote.wire import Wire

T = TypeVar("T")


class RemoteBase:
    """Runs procedures over one wire, for threads and event loops together."""

    def __init__(self, wire: Wire, patience_s: float) -> None:
        self._wire = wire
        self._patience_s = patience_s

    def run(self, procedure: Remote[T], connection: object | None = None) -> T:
        """Run a procedure in this thread.

        Raises:
            BlockingCall: inside a running event loop.
        """
        assert connection is None  # there is no transaction to be part of
        refuse_in_loop()
        try:
            return run(procedure, self._wire.send)
        except FencerowError as error:
            raise bare(error)  # noqa: B904 - it is the same error

    async def arun(self, procedure: Remote[T], connection: object | None = None) -> T:
        """`run` in this event loop."""
        assert connection is None
        try:
            return await arun(procedure, self._wire.asend)
        except FencerowError as error:
            raise bare(error)  # noqa: B904 - it is the same error

    _run, _arun = run, arun  # by which its verbs run

    def asking(self, exchange: Exchange) -> Remote[Reply]:
        """One request, repeated as long as the client has patience. For routes that have no method here."""
        return (yield from asking(exchange, self._patience_s))
