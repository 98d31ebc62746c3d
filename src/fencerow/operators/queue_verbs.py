"""Pausing a queue and letting it go on, sync and async: what `Client` is given for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fencerow.core.client.base import ClientBase
from fencerow.core.client.moving import check_reason
from fencerow.core.model.wakeup import Arrived, Queued, encode
from fencerow.core.store import store
from fencerow.core.verb import averb, verb
from fencerow.db.run import Procedure, WakeUp, ask
from fencerow.db.text import check_text

if TYPE_CHECKING:
    from fencerow.operators.queues import PausedQueue

QUEUE_LENGTH_MAX = 100
GATE_ROUNDS_MAX = 20  # of 2,000 gates each; what lies behind them is found by the sweeps of the workers


class QueueVerbs(ClientBase):
    """Each method has an async twin with an `a` in front."""

    @verb
    def pause_queue(self, queue: str, *, reason: str | None = None) -> Procedure[bool]:
        """Stop claims from a queue, also across restarts; returns false if it was paused already, and then
        changes nothing.

        Jobs that workers have claimed already go on. Those that have a turn of an exclusive key, and that nobody has
        claimed, give it up where jobs of other queues wait for it. May be repeated.

        Raises:
            InvalidInput: the queue's name or the reason cannot be used.
        """
        from fencerow.operators import queues  # who only submits never loads it

        check_text(queue, "queue", QUEUE_LENGTH_MAX)
        check_reason(reason)
        changed = yield from ask(queues.pause_queue(queue, actor=self.actor, reason=reason))
        if changed:
            yield from self._give_turns_up()
        return changed

    def _give_turns_up(self) -> Procedure[None]:
        """Workers do the same at their sweeps: nothing is lost if this is broken off."""
        from fencerow.turns.handing import take_turns_back  # who only submits never loads it
        from fencerow.turns.looks import gates_after

        gates: list[str] = []
        for _ in range(GATE_ROUNDS_MAX):
            gates = yield from ask(gates_after(gates[-1] if gates else ""))
            if not gates:
                return
            if (yield from ask(take_turns_back(gates, unclaimed_s=None, actor=self.actor))):
                yield WakeUp([encode(Arrived())])

    apause_queue = averb(pause_queue)

    @verb
    def resume_queue(self, queue: str) -> Procedure[bool]:
        """Allow claims from a queue again; returns false if it was not paused. Its workers learn of it at
        once. May be repeated.

        Raises:
            InvalidInput: the queue's name cannot be used.
        """
        from fencerow.operators import queues

        check_text(queue, "queue", QUEUE_LENGTH_MAX)
        if not (yield from ask(queues.resume_queue(queue))):
            return False
        lanes, now_us = yield from ask(store.lanes(queue))
        due = [
            Queued(queue, lane.priority, lane.first_us, lane.name)
            for lane in lanes
            if lane.first_us <= now_us
        ]
        yield WakeUp([encode(message) for message in due])  # its workers, for what has gathered
        yield from self._tell_gates(queue)
        return True

    def _tell_gates(self, queue: str) -> Procedure[None]:
        """Workers do the same at their sweeps: nothing is lost if this is broken off."""
        from fencerow.turns.looks import tell_gates

        after = ""
        for _ in range(GATE_ROUNDS_MAX):
            after = yield from ask(tell_gates(queue, after))
            yield WakeUp([encode(Arrived())])
            if not after:
                return

    aresume_queue = averb(resume_queue)

    @verb
    def paused_queues(self) -> Procedure[list[PausedQueue]]:
        """The paused queues: since when, by whom, why."""
        from fencerow.operators import queues

        return (yield from ask(queues.paused_queues()))

    apaused_queues = averb(paused_queues)
