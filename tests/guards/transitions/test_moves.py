"""One row at a time: a legal move returns the row, an illegal one None and the reason."""

from __future__ import annotations

from typing import Any

import pytest

from fencerow.errors import InvalidMove, UnknownMove
from fencerow.guards.transitions import Refusal, Transitions
from fencerow.testing.clock import DatabaseClock
from tests.guards.transitions.tables import LEASE_S, MARGIN_S, insert, sql
from tests.kit.jobs import AnyEngine
from tests.kit.plainly import plainly


@pytest.fixture(autouse=True)
def _row(engine: AnyEngine, table: str) -> None:
    insert(engine, table, "a")


def claimed(documents: Transitions, row_id: str = "a") -> int:
    row = plainly(documents.move, "claim", row_id)
    assert row is not None
    return int(row["attempts"])


def test_a_legal_move_returns_the_row_as_it_is_now(documents: Transitions) -> None:
    row = documents.move("claim", "a")

    assert row is not None
    assert (row["id"], row["status"], row["attempts"]) == ("a", "running", 1)
    assert row["started_at"] is not None and row["finished_at"] is None


def test_a_move_from_another_state_changes_nothing(
    documents: Transitions, engine: AnyEngine, table: str
) -> None:
    claimed(documents)
    before = sql(engine, f"SELECT * FROM {table}")

    assert documents.move("cancel", "a") is None
    assert sql(engine, f"SELECT * FROM {table}") == before


def test_it_sets_stamps_clears_and_takes_values(documents: Transitions) -> None:
    fence = claimed(documents)

    row = documents.move("succeed", "a", fence=fence, values={"result": "42"})

    assert row is not None
    assert (row["status"], row["result"]) == ("succeeded", "42") and row["finished_at"] is not None


def test_a_requeued_row_is_a_new_attempt(documents: Transitions) -> None:
    fence = claimed(documents)

    back = documents.move("requeue", "a", fence=fence)

    assert back is not None and back["started_at"] is None
    assert claimed(documents) == fence + 1


def test_a_fresh_lease_excludes_a_second_claim_and_a_stale_one_does_not(
    documents: Transitions, clock: DatabaseClock
) -> None:
    first = claimed(documents)
    clock.advance(LEASE_S - MARGIN_S)
    assert documents.move("claim", "a") is None

    clock.advance(2 * MARGIN_S)

    assert claimed(documents) == first + 1
    assert documents.move("succeed", "a", fence=first) is None
    assert documents.move("succeed", "a", fence=first + 1) is not None
    clock.close()


def test_who_renews_keeps_it(documents: Transitions, clock: DatabaseClock) -> None:
    fence = claimed(documents)
    clock.advance(LEASE_S - MARGIN_S)

    row = documents.renew("claim", "a", fence=fence, values={"result": "half"})

    assert row is not None and row["result"] == "half"
    clock.advance(LEASE_S - MARGIN_S)
    assert documents.move("claim", "a") is None
    clock.advance(2 * MARGIN_S)
    assert claimed(documents) == fence + 1
    assert documents.renew("claim", "a", fence=fence) is None
    clock.close()


def why(answer: Any) -> str:
    assert isinstance(answer, Refusal)
    return str(answer.reason)


def test_a_refusal_says_why(documents: Transitions, clock: DatabaseClock) -> None:
    assert why(documents.move_or_why("claim", "nobody")) == "gone"
    fence = claimed(documents)
    refused = documents.move_or_why("cancel", "a")
    assert isinstance(refused, Refusal)
    assert (refused.reason, refused.state, refused.fence) == ("state", "running", fence)
    assert why(documents.move_or_why("claim", "a")) == "leased"
    assert why(documents.move_or_why("succeed", "a", fence=fence + 1)) == "fence"
    assert why(documents.sub("boxes").move_or_why("ask", "a")) == "within"
    row = documents.move_or_why("succeed", "a", fence=fence)
    assert not isinstance(row, Refusal) and row["status"] == "succeeded"
    clock.close()


async def test_async_verbs_do_the_same(documents: Transitions) -> None:
    row = await documents.amove("claim", "a")
    assert row is not None
    assert await documents.arenew("claim", "a", fence=1) is not None
    assert why(await documents.amove_or_why("claim", "a")) == "leased"
    assert await documents.amove("succeed", "a", fence=1, values={"result": "1"}) is not None
    assert await documents.atake("claim", 3) == []
    assert await documents.afind_stuck() == []
    assert (await documents.sub("boxes").areap()).moved == {"give_up": [], "requeue": []}


def test_a_move_by_anyone_needs_no_fence(documents: Transitions) -> None:
    fence = claimed(documents)
    assert documents.move("kill", "a", fence=fence + 1) is None
    assert documents.move("kill", "a") is not None


def test_a_condition_of_its_own_is_part_of_the_guard(
    documents: Transitions, engine: AnyEngine, table: str
) -> None:
    insert(engine, table, "mine", tenant="x")

    assert documents.move("claim_of_tenant", "mine", params={"tenant": "y"}) is None
    assert why(documents.move_or_why("claim_of_tenant", "mine", params={"tenant": "y"})) == "condition"
    assert documents.move("claim_of_tenant", "mine", params={"tenant": "x"}) is not None


@pytest.mark.parametrize(
    ("name", "given", "error"),
    [
        ("clam", {}, UnknownMove),
        ("succeed", {}, InvalidMove),
        ("cancel", {"fence": 1}, InvalidMove),
        ("succeed", {"fence": "1"}, InvalidMove),
        ("succeed", {"fence": 1, "values": {"status": "queued"}}, InvalidMove),
        ("claim_of_tenant", {}, InvalidMove),
        ("claim", {"params": {"tenant": "x"}}, InvalidMove),
    ],
)
def test_what_is_missing_or_too_much_is_refused_at_the_door(
    documents: Transitions, name: str, given: dict[str, Any], error: type[Exception]
) -> None:
    with pytest.raises(error):
        documents.move(name, "a", **given)


def test_the_closest_names_are_told(documents: Transitions) -> None:
    with pytest.raises(UnknownMove, match="closest: claim"):
        documents.move("clam", "a")
    with pytest.raises(UnknownMove, match="boxes"):
        documents.sub("boxs")
    with pytest.raises(UnknownMove, match="claim"):
        documents.renew("succeed", "a", fence=1)


async def test_a_row_can_be_looked_at(documents: Transitions) -> None:
    """As after an outcome that is unknown."""
    claimed(documents)

    row = await documents.aread("a")

    assert row is not None and (row["status"], row["attempts"]) == ("running", 1)
    assert await documents.aread("a") == row
    assert await documents.aread("nobody") is None
