"""Whether all living workers know what a new job needs."""

from __future__ import annotations

import time
from collections.abc import Sequence

from fencerow.core.errors import DatabaseError
from fencerow.core.model.rules import needed
from fencerow.core.model.submission import Submission
from fencerow.core.store import store
from fencerow.core.store.workers import Unaware, older_workers
from fencerow.db.engine import Engine

LOOKED_S = 5.0  # how long a look is good for


class Fleet:
    """Looks before a submit that needs a rule, on a connection of ours, and not at each of them.

    A worker that starts between two looks keeps a limit all the same: who gets a turn is decided elsewhere. It only
    hands no turn on, which the others' sweep makes up for.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._looked: dict[str, float] = {}

    def check(self, submissions: Sequence[Submission]) -> None:
        """Look, if one of these jobs needs a rule.

        Raises:
            OlderWorkers: a living worker does not know it. Nothing is stored.
        """
        for rule in self._due(submissions):
            try:
                self._judge(rule, self._engine.run(store.unaware_workers(rule)))
            except DatabaseError:
                return  # the submit itself will say what is wrong, or does not depend on it

    async def acheck(self, submissions: Sequence[Submission]) -> None:
        """`check` in an event loop."""
        for rule in self._due(submissions):
            try:
                self._judge(rule, await self._engine.arun(store.unaware_workers(rule)))
            except DatabaseError:
                return

    def _due(self, submissions: Sequence[Submission]) -> list[str]:
        rules = needed(each.job for each in submissions if each.job.writes_more)
        if not rules:
            return []
        now = time.monotonic()
        return sorted(rule for rule in rules if now - self._looked.get(rule, -LOOKED_S) >= LOOKED_S)

    def _judge(self, rule: str, unaware: list[Unaware]) -> None:
        if not unaware:
            self._looked[rule] = time.monotonic()
            return
        raise older_workers(rule, unaware)
