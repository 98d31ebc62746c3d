"""The child's side by itself, which hears one message right after the other."""

from __future__ import annotations

import socket
from dataclasses import asdict

import msgspec
import pytest

from fencerow.core.model.outcome import Stopped, Succeeded
from fencerow.core.worker.attempt import Interrupt
from fencerow.core.worker.deciding import Decision
from fencerow.processes import service as services
from fencerow.processes.origin import origin_of
from fencerow.processes.service import ChildService
from fencerow.processes.wire import (
    LENGTH,
    ChildReply,
    EndAttempt,
    RunAttempt,
    Start,
    ToChild,
    ToWorker,
    decision_of,
)
from tests.core.worker.test_parts import claimed
from tests.kit.jobs import AnyEngine
from tests.processes import shop
from tests.processes.conftest import settings

RUN = RunAttempt(
    origin_of(shop.healthy.handler), msgspec.structs.replace(claimed(), name="healthy"), "holder", "{}"
)
END = EndAttempt(Interrupt.CANCEL)


@pytest.fixture(autouse=True)
def _log_stays_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """A child takes all loggers of its process for itself; this is the process of other tests too."""
    monkeypatch.setattr(services, "forward_all", lambda *_given: None)


async def decided(engine: AnyEngine, *messages: ToChild) -> Decision:
    """What becomes of the attempt when all of this is heard in one turn of the child's event loop."""
    worker, child = socket.socketpair()
    with worker, child:
        start = Start([], [], None, asdict(settings(engine)), {}, None)
        service = ChildService(child, start)
        for message in messages:
            service._heard(message)
        assert service._running is not None
        await service._running
        await service._engine.aclose()
        (size,) = LENGTH.unpack(worker.recv(LENGTH.size))
        said = msgspec.json.decode(worker.recv(size), type=ToWorker)
    assert isinstance(said, ChildReply)
    return decision_of(said)


async def test_who_is_asked_to_end_with_the_same_breath_does_not_start(lite: AnyEngine) -> None:
    assert await decided(lite, RUN, END) == Stopped("cancelled before it started")


async def test_what_the_attempt_before_was_asked_for_is_nothing_to_the_next(lite: AnyEngine) -> None:
    assert isinstance(await decided(lite, END, RUN), Succeeded)
