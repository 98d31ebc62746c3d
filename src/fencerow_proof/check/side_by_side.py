"""Two runs of a handler, for the loop that plays one order of their actions."""

from __future__ import annotations

import time
from collections.abc import Hashable, Sequence

from fencerow_proof.check.ground import Ground
from fencerow_proof.check.process import Process, hear_any
from fencerow_proof.check.runner import Runner
from fencerow_proof.errors import CheckStuck
from fencerow_proof.explorer.footprint import Footprint
from fencerow_proof.explorer.trace import Trace

MOVES_MAX = 1000
PATIENCE_S = 0.05


class SideBySide:
    """Whose turn it is. `common`: what a clean run touches; an action that touches none of it is no choice."""

    touched = None  # the state tells more: what was before what

    def __init__(
        self, ground: Ground, first: Runner, second: Runner, common: Footprint, story: list[str]
    ) -> None:
        self._ground = ground
        self._other = {first.name: second, second.name: first}
        self._runners = {first.name: first, second.name: second}
        self._common = common
        self._story = story
        self._trace = Trace()
        self._moves = 0
        self._until = time.monotonic() + 2 * ground.options.run_s

    @property
    def is_over(self) -> bool:
        return all(each.is_over for each in self._runners.values())

    @property
    def state(self) -> Hashable:
        return self._trace.state()

    def options(self) -> list[str]:
        """Who can get anywhere now; who would only ask again what it has asked, when there is nobody else."""
        self._ground.director.settle(self._ground.scratch, self._processes())
        found = [name for name, each in self._runners.items() if each.may_go(self._other[name])]
        if len(found) > 1:
            return [name for name in found if not self._runners[name].repeats] or found
        return found

    def forced(self, options: Sequence[str]) -> str | None:
        alone = [name for name in options if not self._runners[name].next.meets(self._common)]
        return alone[0] if alone else options[0] if len(options) == 1 else None

    def step(self, name: str) -> None:
        taken, other = self._runners[name], self._other[name]
        self._trace.note(name, taken.next)
        self._story.append(taken.go(other))
        other.moved_on()
        self._moves += 1
        self._refuse_endless()

    def unblock(self) -> None:
        """A ring of locks. On SQLite one of them fails after its time; PostgreSQL breaks it."""
        processes = self._processes()
        busy = [each for each in processes if each.busy]
        if busy:
            busy[-1].fail()
        else:
            hear_any(processes, PATIENCE_S)
        self._refuse_endless()

    def _processes(self) -> list[Process]:
        runners = self._runners.values()
        return [each.process for each in runners if each.process is not None and not each.is_over]

    def _refuse_endless(self) -> None:
        if self._moves > MOVES_MAX or time.monotonic() > self._until:
            raise CheckStuck(
                "two runs of the handler side by side do not come to an end",
                f"after {self._moves} moves; the last was {self._story[-1] if self._story else 'none'}",
                "look what they wait for there",
            )
