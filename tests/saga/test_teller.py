"""Who tells of compensations looks only for ends that may have made one, and until it has an answer."""

from __future__ import annotations

import pytest

from fencerow.core.model.wakeup import JobsEnded
from fencerow.errors import Unavailable
from fencerow.saga.teller import REST_S, Teller


class Away:
    """An engine that does not answer the first question, and counts them."""

    def __init__(self) -> None:
        self.asked = 0

    async def arun(self, _: object) -> list[object]:
        self.asked += 1
        if self.asked == 1:
            raise Unavailable("away", "it restarts", "wait")
        return []


async def test_an_end_is_looked_for_again_after_trouble_and_a_success_never() -> None:
    away = Away()
    teller = Teller(lambda: away)  # type: ignore[arg-type,return-value]
    assert not teller.is_for(JobsEnded(("a",), succeeded=True))
    assert teller.is_for(JobsEnded(("b",)))

    with pytest.raises(Unavailable):
        await teller.tick()
    for _ in range(2):
        assert await teller.tick() == REST_S

    assert away.asked == 2, "once in vain, once with an answer"
