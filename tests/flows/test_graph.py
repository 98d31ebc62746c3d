"""A flow that cannot run is refused at the door, with what is wrong; nothing is stored."""

from __future__ import annotations

import pytest

from fencerow.errors import FlowCycle, FlowNameTaken, FlowTooLarge, InvalidFlow, UnknownFlowJob
from fencerow.flows.graph import DEPTH_MAX, EDGES_MAX, JOBS_MAX, Policy, ordered
from tests.core.store.stage import rows
from tests.flows.stage import Shop
from tests.kit.jobs import AnyEngine


def test_everybody_stands_behind_those_it_waits_for() -> None:
    needs, after = Policy.NEEDS, Policy.AFTER
    order = ordered({"d": {"b": needs, "c": after}, "b": {"a": needs}, "c": {"b": needs}, "a": {}, "e": {}})

    assert all(order.names.index(one) < order.names.index(other) for one, other in ("ab", "bc", "bd", "cd"))
    assert order.levels == {"a": 0, "e": 0, "b": 1, "c": 2, "d": 3}


def test_what_cannot_run_is_refused_and_nothing_is_stored(engine: AnyEngine, shop: Shop) -> None:
    call = shop.say.call("x")
    ring, unknown, empty, twice = shop.flow(), shop.flow(), shop.flow(), shop.flow()
    ring.add("a", call, needs=["c"])
    ring.add("b", call, after=["a"])
    ring.add("c", call, needs=["b"])
    ring.add("free", call)
    unknown.add("fetch page", call)
    unknown.add("b", call, needs=["fetch pag"])
    twice.add("a", call)

    with pytest.raises(FlowCycle, match=r"'\w' -> '\w' -> '\w' -> '\w'"):
        ring.submit()
    with pytest.raises(UnknownFlowJob, match="closest names are 'fetch page'"):
        unknown.submit()
    with pytest.raises(InvalidFlow, match="has no job"):
        empty.submit()
    with pytest.raises(FlowNameTaken):
        twice.add("a", call)
    with pytest.raises(InvalidFlow, match="both needs"):
        twice.add("b", call, needs=["a"], after=["a"])
    with pytest.raises(InvalidFlow, match="a list of jobs"):
        twice.add("b", call, needs="a")
    with pytest.raises(InvalidFlow, match="submitted with key="):
        twice.add("b", shop.say.using(key="k").call("x"))
    with pytest.raises(InvalidFlow, match="a call of a declared job"):
        twice.add("b", "x")  # type: ignore[arg-type]

    assert not rows(engine, "SELECT id FROM {jobs}")
    assert not rows(engine, "SELECT id FROM {flows}")


@pytest.mark.parametrize(
    "edges",
    [
        {str(at): {} for at in range(JOBS_MAX + 1)},
        {str(at): {str(at - 1): Policy.NEEDS} if at else {} for at in range(DEPTH_MAX + 1)},
        {
            str(at): {str(other): Policy.AFTER for other in range(min(at, 400))}
            for at in range(EDGES_MAX // 400 + 500)
        },
    ],
    ids=["jobs", "depth", "edges"],
)
def test_there_are_bounds(edges: dict[str, dict[str, Policy]]) -> None:
    with pytest.raises(FlowTooLarge):
        ordered(edges)
