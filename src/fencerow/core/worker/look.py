"""What is known of all queues that one pool serves, and what wakes its claimer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from fencerow.core.model.lane import ANYBODYS, STRICT, Ageing
from fencerow.core.worker.marks import QueueView


class QueueLook:
    """What is known of the queues that one pool serves, and what wakes its claimer. Used on the event loop only."""

    def __init__(self, poll_max_s: float, ageing: Ageing = STRICT) -> None:
        self.views: dict[str, QueueView] = {}
        self._ageing = ageing
        self.woken = asyncio.Event()  # the claimer's loop waits for it
        # The claimer's: whether it claims what a hint told of at once, so that its loop need not be woken.
        self.claims_at_once: Callable[[QueueView], bool] = _never
        self._poll_max_s = poll_max_s

    def follow(self, queues: Sequence[str]) -> None:
        """These are served from now on; what is known of those that stay is kept."""
        kept = self.views
        self.views = {
            queue: kept.get(queue) or QueueView(queue, self._poll_max_s, self._ageing) for queue in queues
        }

    def hint(self, queue: str, priority: int, run_at_us: int | None, lane: str = ANYBODYS) -> None:
        """A job was put there: look, from no later than its place on."""
        view = self.views.get(queue)
        if view is not None:
            view.hint(priority, run_at_us, lane)
            if not (view.has_more and self.claims_at_once(view)):
                self.woken.set()

    def made_room(self) -> None:
        """Jobs have ended: where a limit was full, look at once."""
        for view in self.views.values():
            if view.limit.is_there and view.limit.made_room():
                self.woken.set()

    def look_again(self) -> None:
        """Hints may have been lost: sweep every queue at once."""
        for view in self.views.values():
            view.look_again()
        self.woken.set()

    def any_suspect(self) -> bool:
        """Whether a suspect is known of in any queue."""
        return any(view.suspects.due_at is not None for view in self.views.values())

    def is_idle(self) -> bool:
        """Whether a look from the beginning found nothing due in any queue."""
        return all(view.is_idle() for view in self.views.values())


def _never(_view: QueueView) -> bool:
    return False
