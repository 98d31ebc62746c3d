"""What is said to people about who has a turn."""

from __future__ import annotations

from fencerow.command.times import span
from fencerow.core.model.state import State
from fencerow.turns.keys import COUNTED_MAX, Holder


def doing(found: Holder, now_us: int) -> str:
    """What a job does that has a turn, for people."""
    if found.state is State.RUNNING:
        where = f" in {found.worker} on {found.host}, pid {found.pid}" if found.worker else ""
        began = "" if found.started_us is None else f" for {span((now_us - found.started_us) / 1e6)}"
        return f"runs{began}{where}"
    left_s = (found.run_at_us - now_us) / 1e6
    later = f", due in {span(left_s)}" if left_s > 0 else ""
    if found.keeps_its_turn:
        return f"strict, between its attempts{later}"
    return f"to be claimed{later}"


def counted(count: int) -> str:
    """A count of jobs that ends at 1,000."""
    return f"{count} or more" if count >= COUNTED_MAX else str(count)
