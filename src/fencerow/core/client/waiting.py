"""One poller per engine asks for all jobs that somebody in this process waits for.

It is a thread that lives while anybody waits, sync or async. It looks every 50 ms, less and less often up
to once a second, and at once when an end is announced. While the database is away it goes on trying.
"""

from __future__ import annotations

import copy
import logging
import math
import os
import threading
import time
from collections.abc import Callable, Collection, Iterable
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress

from fencerow.core.errors import Busy, FencerowError, InvalidInput, OutcomeUnknown, Unavailable
from fencerow.core.model import wakeup
from fencerow.core.model.job import EndOfJob
from fencerow.core.model.seconds import Seconds, in_seconds, is_finite
from fencerow.core.store import store
from fencerow.db.engine import Engine
from fencerow.db.service import Service
from fencerow.db.strikes import SHELTER, here, sheltered
from fencerow.db.text import shown
from fencerow.db.trouble import is_shortage

log = logging.getLogger("fencerow.client")

PAUSE_MIN_S = 0.05
PAUSE_MAX_S = 1.0
PAUSE_GROWTH = 1.5
MARK_TRIES = 5  # then it is taken as marked by somebody else, and polling remains
MARK_AGAIN_S = 0.005
LINGER_S = 1.0  # so that waits in a row have one thread and one LISTEN
IDS_MAX = 500
# A job may be deleted while somebody waits for it; that is looked at seldom.
EXISTENCE_S = 5.0

PASSING = (Unavailable, Busy, OutcomeUnknown, OSError)

# None: the job is nowhere.
Answer = EndOfJob | None


class Poller:
    """Who waits for which job, and the thread that asks for them."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._reset()

    def _reset(self) -> None:
        self._pid = os.getpid()
        self._changed = threading.Condition()
        self._watched: dict[str, list[Future[Answer]]] = {}
        self._marked: set[str] = set()
        self._mark_tries: dict[str, int] = {}
        self._look_now = False
        self._closed = False
        self._service = Service("fencerow-results", self._turn, rest=self._rest, over=self._stop_listening)
        self._unlisten: Callable[[], None] | None = None  # this and the next two: the thread's own
        self._pause_s = PAUSE_MIN_S
        self._checked = time.monotonic()
        self._over: list[Callable[[], None]] = []  # listening that the last thread has left
        self.trouble: Exception | None = None

    def watch(self, job_id: str) -> Future[Answer]:
        """A future of how the job ends. Call `forget` when nobody waits for it any more.

        Raises:
            Unavailable: the client was closed.
        """
        if here.striker is None:
            return self._watch(job_id)
        with SHELTER:
            return self._watch(job_id)

    def _watch(self, job_id: str) -> Future[Answer]:
        if os.getpid() != self._pid:
            self._reset()  # the parent's thread did not come along
        future: Future[Answer] = Future()
        with self._changed:
            if self._closed:
                raise _closed()
            self._service.need()
            self._watched.setdefault(job_id, []).append(future)
            self._look_now = True
            self._changed.notify_all()
        return future

    @sheltered
    def forget(self, job_id: str, future: Future[Answer]) -> None:
        """Stop watching on behalf of one that waited."""
        with self._changed:
            left = [each for each in self._watched.get(job_id, ()) if each is not future]
            if left:
                self._watched[job_id] = left
            else:
                self._watched.pop(job_id, None)
                self._marked.discard(job_id)
                self._mark_tries.pop(job_id, None)

    @sheltered
    def close(self) -> None:
        """Tell those who still wait, and end the thread."""
        with self._changed:
            self._closed = True
            pending = list(self._watched)
            self._changed.notify_all()
        self._fail(pending, _closed())
        self._service.join()

    # --- the thread --------------------------------------------------------------------------------

    def _turn(self) -> bool:
        found = self._next(self._pause_s)
        if found is None:
            return False
        ids, asked = found
        check = time.monotonic() - self._checked > EXISTENCE_S
        self._checked = time.monotonic() if check else self._checked
        self._look_at(ids, check)
        self._pause_s = PAUSE_MIN_S if asked else min(self._pause_s * PAUSE_GROWTH, PAUSE_MAX_S)
        if self._mark_tries:
            self._pause_s = MARK_AGAIN_S
        return True

    def _leave(self) -> None:
        """Under the lock: the next who waits begins with a thread and a LISTEN of its own."""
        self._service.leave()
        self._over += [self._unlisten] if self._unlisten is not None else []
        self._unlisten = None
        self._pause_s, self._checked = PAUSE_MIN_S, time.monotonic()

    def _stop_listening(self) -> None:
        with self._changed:
            over, self._over = self._over, []
        for unlisten in over:
            unlisten()

    def _rest(self, pause_s: float) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._closed, pause_s)

    def _next(self, pause_s: float) -> tuple[list[str], bool] | None:
        """What to look at, and whether somebody asked for the look; None when the thread is not needed."""
        with self._changed:
            if not self._watched and not self._closed:
                self._changed.wait_for(lambda: self._watched or self._closed, LINGER_S)
            elif not self._look_now and not self._closed:
                self._changed.wait_for(lambda: self._look_now or self._closed, pause_s)
            if self._closed or not self._watched:
                self._leave()
                return None
            asked, self._look_now = self._look_now, False
            return list(self._watched), asked

    def _look_at(self, ids: list[str], check: bool) -> None:
        for at in range(0, len(ids), IDS_MAX):
            some = ids[at : at + IDS_MAX]
            try:
                self._look_at_some(some, check)
                self.trouble = None
            except Exception as error:
                if not isinstance(error, PASSING) and not is_shortage(error):
                    self._fail(some, error)
                    continue
                if self.trouble is None:
                    log.warning("results cannot be read, trying again: %s", error)
                self.trouble = error

    def _look_at_some(self, ids: list[str], check: bool) -> None:
        self._settle(self._engine.run(store.outcomes(ids)))
        left = [job_id for job_id in ids if job_id in self._watched]
        fresh = [job_id for job_id in left if job_id not in self._marked]
        unmarked: list[str] = []
        if fresh:
            if self._unlisten is None:
                self._unlisten = self._engine.listen(self._heard)
            # The end of what is marked now is announced. The others are locked just now, or have ended since the look.
            marked = self._mark(fresh)
            unmarked = [job_id for job_id in fresh if job_id not in marked]
        if unmarked:
            self._settle(self._engine.run(store.outcomes(unmarked)))
        unseen = left if check else unmarked
        doubtful = [job_id for job_id in unseen if job_id in self._watched]
        if doubtful:
            existing = self._engine.run(store.existing(doubtful))
            self._settle({job_id: None for job_id in doubtful if job_id not in existing})

    def _mark(self, ids: list[str]) -> Collection[str]:
        """Note that somebody waits; returns those noted now, which are there and live.

        A row that is locked is passed over, by a claim for example: it is tried again.
        """
        noted = self._engine.run(store.mark_awaited(ids))
        for job_id in ids:
            tries = self._mark_tries.get(job_id, 0) + 1
            if job_id in noted or tries >= MARK_TRIES:
                self._mark_tries.pop(job_id, None)
                self._marked.add(job_id)
            else:
                self._mark_tries[job_id] = tries
        return noted

    def _heard(self, message: str | None) -> None:
        """None: something may have been missed."""
        said = None if message is None else wakeup.decode(message)
        with self._changed:
            ours = isinstance(said, wakeup.JobsEnded) and any(job_id in self._watched for job_id in said.ids)
            if message is None or ours:
                self._look_now = True
                self._changed.notify_all()

    def _settle(self, answers: dict[str, EndOfJob] | dict[str, None]) -> None:
        for job_id, answer in answers.items():
            for future in self._taken(job_id):
                with suppress(InvalidStateError):  # its caller stopped waiting at this moment
                    future.set_result(answer)

    def _fail(self, ids: Iterable[str], error: Exception) -> None:
        for job_id in ids:
            for future in self._taken(job_id):
                with suppress(InvalidStateError):  # its caller stopped waiting at this moment
                    future.set_exception(copy.copy(error) if isinstance(error, FencerowError) else error)

    def _taken(self, job_id: str) -> list[Future[Answer]]:
        with self._changed:
            self._marked.discard(job_id)
            self._mark_tries.pop(job_id, None)
            return self._watched.pop(job_id, [])


def _closed() -> Unavailable:
    return Unavailable(
        "this client was closed", "a closed client does not use the database", "open another one"
    )


def check_wait(timeout_s: Seconds | None) -> float | None:
    """How long somebody wants to wait, in seconds; None is for ever, and 0 or less is a single look.

    Raises:
        InvalidInput: it is no number, or not a number (NaN).
    """
    given: object = in_seconds(timeout_s)
    if given is None or given == math.inf:
        return None
    if not is_finite(given) and given != -math.inf:
        raise InvalidInput(
            f"timeout_s is {shown(given)}",
            "a number of seconds or a timedelta is expected",
            "correct timeout_s",
        )
    assert isinstance(given, (int, float))
    return float(given)
