"""A primary and a standby that follows it, for each test its own: they are not the same afterwards."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from fencerow.testing.postgres import PostgresServer
from fencerow_proof.network.proxy import FaultProxy
from fencerow_proof.servers.standby import StandbyServer, together
from tests.whole.outages.conftest import report  # noqa: F401 (a fixture)

ROLE = DATABASE = "app"


@dataclass(frozen=True)
class Pair:
    """Two servers, and the network between them."""

    primary: PostgresServer
    standby: StandbyServer
    between: FaultProxy

    @property
    def url(self) -> str:
        """One URL that leads to whichever takes writes."""
        return together(self.primary, self.standby, database=DATABASE, role=ROLE)

    def wait_for_standby_at_commit(self) -> None:
        """From here on a commit is confirmed only when the standby has it: nothing can be lost."""
        with self.primary.connect() as connection:
            connection.execute("ALTER SYSTEM SET synchronous_standby_names = 'standby'")
            connection.execute("SELECT pg_reload_conf()")

    def part(self) -> None:
        """Cut the standby off: the primary goes on alone, and confirms what only it has."""
        self.standby.catch_up()
        self.between.refuse_new()
        self.between.cut_all()

    def fail_over(self) -> None:
        """The primary crashes and does not come back; the standby takes its place."""
        self.primary.stop("immediate")
        self.standby.promote()


@pytest.fixture
def pair() -> Iterator[Pair]:
    with PostgresServer(fast=True, tcp=True) as primary:
        primary.create_role_and_schema(role=ROLE, database=DATABASE)
        with (
            FaultProxy(primary.port) as between,
            StandbyServer(primary, via_port=between.port) as standby,
        ):
            yield Pair(primary, standby, between)
