"""`client.mutexes`: look at mutexes, and take one from a holder that keeps it wrongly; sync and async."""

from __future__ import annotations

import fencerow.guards.mutex.mutexes as mutexes
from fencerow.core.client.base import Verbs
from fencerow.core.errors import InvalidInput
from fencerow.core.verb import averb, verb
from fencerow.db.run import Procedure, ask
from fencerow.db.text import check_text
from fencerow.guards.mutex.errors import MutexNotFound
from fencerow.guards.mutex.mutexes import MutexRecord
from fencerow.guards.mutex.terms import KEY_LENGTH_MAX

LIMIT = 100
LIMIT_MAX = 10_000
REASON_LENGTH_MAX = 500


class Mutexes(Verbs):
    """Looks at mutexes, and frees those that somebody else holds. Each method has an async twin with an `a`
    in front."""

    @verb
    def held(self, *, limit: int = LIMIT) -> Procedure[list[MutexRecord]]:
        """The mutexes that are held, the longest first. Stale ones, which anybody may take over, are among them.

        Raises:
            InvalidInput: `limit` is not from 1 to 10,000.
        """
        if not 1 <= limit <= LIMIT_MAX:
            raise InvalidInput(f"limit is {limit}", f"1 to {LIMIT_MAX} are listed", "correct limit")
        return (yield from ask(mutexes.held(limit=limit)))

    aheld = averb(held)

    @verb
    def get(self, key: str) -> Procedure[MutexRecord]:
        """The mutex of this key as it stands, held or not.

        Raises:
            MutexNotFound: it was never taken.
        """
        return (yield from _reading(key))

    aget = averb(get)

    @verb
    def free(self, key: str, token: int, *, reason: str | None = None) -> Procedure[bool]:
        """Take a mutex from the holder with this token; returns false if nobody holds it with this token any more.

        The holder learns of it at its next renewal. Its guarded writes are refused from now on; nobody can
        stop its writes without a guard. The mutex keeps who did this and why.

        Raises:
            MutexNotFound: it was never taken. InvalidInput: the key or the reason cannot be used.
        """
        if reason is not None:
            check_text(reason, "the reason", REASON_LENGTH_MAX)
        yield from _reading(key)
        return (yield from ask(mutexes.free(key, token=token, actor=self._client.actor, reason=reason)))

    afree = averb(free)


def _reading(key: str) -> Procedure[MutexRecord]:
    found = yield from ask(mutexes.look(check_text(key, "the key of a mutex", KEY_LENGTH_MAX)))
    if found is None:
        raise MutexNotFound(
            f"no mutex {key!r} was ever taken here", "the first take makes a mutex", "check the key"
        )
    return found
