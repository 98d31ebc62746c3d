"""Jobs that have waited long enough for a label, while somebody locks one of them."""

from __future__ import annotations

from fencerow.core.store import store
from fencerow.db.postgres import PostgresEngine
from fencerow.testing.clock import clock_of
from fencerow.turns.falling_back import FallBack
from fencerow.turns.hander import Hander
from tests.kit.jobs import new_job, submit
from tests.kit.sites import site_of


async def test_a_locked_job_whose_wait_for_a_label_is_over_is_asked_for_less_and_less_often(
    pg: PostgresEngine,
) -> None:
    site = site_of(pg)
    falling_back = FallBack(site)
    (labelled,) = submit(pg, new_job(affinity="gpu", affinity_wait_s=1.0))
    clock_of(pg).advance(2.0)

    with pg.session() as other:
        other.connection.execute("SELECT 1 FROM fencerow.jobs WHERE id = %s FOR UPDATE", (labelled,))
        keyed = submit(pg, *(new_job(exclusive=key) for key in ("a", "b")))
        pauses = [await falling_back.tick() for _ in range(2)]
        await Hander(site).tick()

    found = await pg.arun(store.read(keyed))
    assert {each.state for each in found.values()} == {"queued"}, "it stops no turn"
    assert min(pauses) > 0, "nobody asks without a pause for what is locked"
