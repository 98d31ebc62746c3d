"""What a thread draws by chance beside a test of Hypothesis is not that test's fault."""

from __future__ import annotations

import random
import threading

from hypothesis import given
from hypothesis import strategies as st


def drawn_elsewhere(value: int) -> int:
    """As a pool does it, when it connects anew while a strategy draws."""
    elsewhere = threading.Thread(target=random.random)
    elsewhere.start()
    elsewhere.join()
    return value


@given(st.integers().map(drawn_elsewhere))
def test_another_thread_may_draw_while_a_strategy_does(value: int) -> None:
    assert drawn_elsewhere(value) == value
