"""A job whose submit is committed after those of others that came later. On SQLite there is one writer, so none."""

from __future__ import annotations

from fencerow.core.store import store
from fencerow.db.postgres import PostgresEngine
from fencerow.handovers.terms import HandoverTerms
from tests.handovers.stage import HOLD_S, end, ids, line, receiver
from tests.kit.jobs import new_job


def test_nobody_waits_for_a_submit_that_is_not_committed(pg: PostgresEngine) -> None:
    first, bot = new_job(terms=HandoverTerms("bot", "k", HOLD_S).terms), receiver(pg)
    with pg.session() as session:
        session.run(store.submit_gated([first]))
        early, later = line(pg, 2)
        end(pg, early)
        taken = bot.take(9)
        assert ids(taken) == [early]
        bot.confirm(taken[0])

    end(pg, first.id, later)
    assert ids(bot.take(9)) == [first.id], "it stands where it was submitted"
