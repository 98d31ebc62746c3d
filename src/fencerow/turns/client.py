"""`client.exclusive`: look at exclusive keys; sync and async."""

from __future__ import annotations

import fencerow.turns.keys as keys
from fencerow.core.client.base import Verbs
from fencerow.core.errors import InvalidInput
from fencerow.core.verb import averb, verb
from fencerow.db.run import Procedure, ask
from fencerow.db.text import check_text
from fencerow.turns.keys import ExclusiveKey, KeyList

LIMIT = 100
LIMIT_MAX = 10_000
WAITING = 20
KEY_LENGTH_MAX = 256


class ExclusiveVerbs(Verbs):
    """Looks at exclusive keys. Each method has an async twin with an `a` in front. Nothing is locked or changed."""

    @verb
    def known(self, *, limit: int = LIMIT) -> Procedure[KeyList]:
        """The keys of which jobs are live, those first where somebody has waited longest.

        Of a very large number of keys the first 10,000 are looked at; `is_whole` says whether these were all.

        Raises:
            InvalidInput: `limit` is not from 1 to 10,000.
        """
        _check(limit, "limit")
        return (yield from ask(keys.known_keys(limit=limit)))

    aknown = averb(known)

    @verb
    def get(self, key: str, *, waiting: int = WAITING) -> Procedure[ExclusiveKey]:
        """Who has the turns of this key, and the first `waiting` jobs that wait for one. Nobody: it is free.

        Raises:
            InvalidInput: no job can have such a key, or `waiting` is not from 1 to 10,000.
        """
        _check(waiting, "waiting")
        return (
            yield from ask(keys.look(check_text(key, "the exclusive key", KEY_LENGTH_MAX), limit=waiting))
        )

    aget = averb(get)


def _check(limit: int, what: str) -> None:
    if not 1 <= limit <= LIMIT_MAX:
        raise InvalidInput(f"{what} is {limit}", f"1 to {LIMIT_MAX} are listed", f"correct {what}")
