"""How the end of one process is judged."""

from __future__ import annotations

import signal

import pytest

from fencerow.db.errors import exits
from fencerow.supervisor.member import MemberProcess


@pytest.mark.parametrize(
    ("told", "number", "code"),
    [
        (True, signal.SIGTERM, exits.OK),  # somebody else asked too, while it was on its way out
        (False, signal.SIGTERM, exits.FAILED),
        (True, signal.SIGKILL, exits.FAILED),
    ],
)
def test_one_that_was_told_to_leave_may_die_of_being_told_again(
    told: bool, number: signal.Signals, code: int
) -> None:
    member = MemberProcess(1, lambda _number, _lifeline: ["sleep", "60"], {})
    try:
        if told:
            member.order(hurry=False)
        member.process.send_signal(number)
        member.process.wait()

        assert member.ended() == code
    finally:
        member.process.kill()
        member.process.wait()
        member.close()
