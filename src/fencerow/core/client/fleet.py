"""Whether all living workers know what a new job needs."""

from __future__ import annotations

import time
from collections.abc import Sequence

from fencerow.core.errors import DatabaseError
from fencerow.core.model.rules import needed
from fencerow.core.model.submission import Submission
from fencerow.core.store import store
from fencerow.core.store.workers import older_workers
from fencerow.db.run import Procedure, ask

LOOKED_S = 5.0  # how long a look is good for


class Fleet:
    """Looks before a submit that needs a rule, on a connection of ours, and not at each of them.

    A worker that starts between two looks keeps a limit all the same: who gets a turn is decided elsewhere. It only
    hands no turn on, which the others' sweep makes up for.
    """

    def __init__(self) -> None:
        self._looked: dict[str, float] = {}

    def checking(self, rules: Sequence[str]) -> Procedure[None]:
        """Look whether all living workers know these rules.

        Raises:
            OlderWorkers: a living worker does not know one of them. Nothing is stored.
        """
        for rule in rules:
            try:
                unaware = yield from ask(store.unaware_workers(rule))
            except DatabaseError:
                return  # the submit itself will say what is wrong, or does not depend on it
            if unaware:
                raise older_workers(rule, unaware)
            self._looked[rule] = time.monotonic()

    def due(self, submissions: Sequence[Submission]) -> list[str]:
        """The rules that one of these jobs needs, and for which it is time to look."""
        rules = needed(each.job for each in submissions if each.job.writes_more)
        if not rules:
            return []
        now = time.monotonic()
        return sorted(rule for rule in rules if now - self._looked.get(rule, -LOOKED_S) >= LOOKED_S)
