"""`client.shares`: who shares a queue, and how many turns each has; sync and async."""

from __future__ import annotations

from fencerow.core.client.base import Verbs
from fencerow.core.verb import averb, verb
from fencerow.db.numbers import check_number
from fencerow.db.run import Procedure, ask
from fencerow.db.text import check_text
from fencerow.turns import shares
from fencerow.turns.shares import ShareRecord

QUEUE_LENGTH_MAX = 100
SHARE_LENGTH_MAX = 256
WEIGHT_MAX = 1000


class ShareVerbs(Verbs):
    """Looks at the shares of queues, and sets their weights while jobs run. Each method has an async twin with an `a`
    in front."""

    @verb
    def known(self, queue: str | None = None) -> Procedure[list[ShareRecord]]:
        """The shares of a queue, or of all, that have live jobs or a weight of their own; by queue and name.

        Raises:
            InvalidInput: no queue can have such a name.
        """
        if queue is not None:
            check_text(queue, "queue", QUEUE_LENGTH_MAX)
        return (yield from ask(shares.read_shares(queue)))

    aknown = averb(known)

    @verb
    def weigh(self, queue: str, share: str, weight: int) -> Procedure[bool]:
        """Let a share of a queue start so many jobs (1 to 1000) where a share of weight 1 starts one; from its next
        turn on, in all workers. Weight 1 is what a share has of which nobody says anything. An empty `share` stands for
        the jobs without one. Returns false if it was so already. May be repeated.

        Raises:
            InvalidInput, ConfigError: a name or the weight cannot be used.
        """
        check_text(queue, "queue", QUEUE_LENGTH_MAX)
        if share:
            check_text(share, "share", SHARE_LENGTH_MAX)
        check_number("weight", weight, 1, WEIGHT_MAX)
        if weight == 1:
            return (yield from ask(shares.forget_weight(queue, share)))
        return (yield from ask(shares.weigh_share(queue, share, weight, actor=self._client.actor)))

    aweigh = averb(weigh)
