"""An application that gives all new sockets a time-out."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

import fencerow
from tests.kit.jobs import AnyEngine
from tests.processes.conftest import settings
from tests.processes.test_children import crew


@pytest.fixture
def default_timeout() -> Iterator[None]:
    former = socket.getdefaulttimeout()
    socket.setdefaulttimeout(30)
    yield
    socket.setdefaulttimeout(former)


@pytest.mark.usefixtures("default_timeout")
async def test_a_child_process_waits_for_its_worker_all_the_same(lite: AnyEngine) -> None:
    async with crew(lite, settings(lite)) as stage:
        job = await stage.run("where")

    assert (job.state, job.crashes) == ("succeeded", 0)


def test_every_pair_of_sockets_says_how_long_its_ends_wait() -> None:
    sources = Path(fencerow.__file__).parent.rglob("*.py")

    makers = [path.name for path in sources if "socketpair(" in path.read_text("utf-8")]

    assert makers == ["socket_pairs.py"]
