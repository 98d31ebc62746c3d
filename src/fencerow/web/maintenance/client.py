"""`client.maintenance`: let the gateways take no requests for a while; sync and async."""

from __future__ import annotations

import fencerow.web.maintenance.operations as operations
from fencerow.core.client.base import Verbs
from fencerow.core.client.moving import check_reason
from fencerow.core.errors import InvalidInput
from fencerow.core.model.seconds import Seconds, in_seconds
from fencerow.core.verb import averb, verb
from fencerow.db.run import Procedure, ask
from fencerow.web.maintenance.operations import Maintenance

RETRY_AFTER_S = 60
RETRY_AFTER_S_MAX = 86_400
ACTOR_LENGTH_MAX = 500


class MaintenanceVerbs(Verbs):
    """Begins maintenance, ends it, and says whether it is on. Each method has an async twin with an `a` in front."""

    @verb
    def begin(self, *, reason: str | None = None, retry_after_s: Seconds = RETRY_AFTER_S) -> Procedure[bool]:
        """Let all gateways answer 503 to all but health, and say whether this has changed anything.

        It counts within two seconds, until somebody ends it, across restarts. Requests that are under way end as they
        would; workers, schedules and submits by the library go on. Callers are told to come again after
        `retry_after_s` seconds, 1 to 86,400. Beginning again keeps the first word, so it may be repeated.

        Raises:
            InvalidInput: the reason or `retry_after_s` cannot be used.
        """
        check_reason(reason)
        checked = _seconds(in_seconds(retry_after_s))
        actor = (self._client.actor or "")[:ACTOR_LENGTH_MAX] or None
        return (yield from ask(operations.begin(actor=actor, reason=reason, retry_after_s=checked)))

    abegin = averb(begin)

    @verb
    def end(self) -> Procedure[bool]:
        """Let all gateways take requests again within two seconds, and say whether this has changed anything. It may be
        repeated."""
        return (yield from ask(operations.end()))

    aend = averb(end)

    @verb
    def get(self) -> Procedure[Maintenance | None]:
        """The maintenance that is on: since when, by whom and why; None if there is none."""
        return (yield from ask(operations.read()))

    aget = averb(get)


def _seconds(value: object) -> int:
    if (
        not isinstance(value, int | float)
        or isinstance(value, bool)
        or value % 1
        or not 1 <= value <= RETRY_AFTER_S_MAX
    ):
        raise InvalidInput(
            f"retry_after_s is {ascii(value)[:40]}",
            f"whole seconds from 1 to {RETRY_AFTER_S_MAX} are expected",
            "say when callers shall come again",
        )
    return int(value)
