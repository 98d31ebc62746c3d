"""Endpoints are told that a job of theirs was cancelled: by a signed POST, at most once, beside the cancel."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Coroutine, Sequence
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

import msgspec

from fencerow.core.app.app import JobsApp
from fencerow.core.chore import Chore
from fencerow.core.errors import FencerowError, JobGone, JobNotFound
from fencerow.core.model.job import JobRecord
from fencerow.core.model.state import State
from fencerow.db.run import Steps, as_int, execute, operation
from fencerow.web.webhooks.body import iso
from fencerow.web.webhooks.settings import allowed_of
from fencerow.web.worked.attempts import NOWHERE
from fencerow.web.worked.endpoint import WorkedEndpoint
from fencerow.web.worked.known import worked_by

log = logging.getLogger("fencerow.worked")

TYPE: Final = "job.cancelled"
LOOK_S: Final = 1.0
PAGE_ROWS: Final = 500
RESTS: Final = 10.0  # times as long as a look took, so that many attempts that wait load the database little
REPLY_S: Final = 10.0  # for all of one POST
AT_ONCE_MAX: Final = 100  # under way in one process; what is more is not told


class Sent(NamedTuple):
    """An attempt whose endpoint said that it answers later."""

    id: str
    attempt: int


class Place(NamedTuple):
    """Where a page of waiting attempts begins: behind an instant and a job."""

    look_at_us: int
    id: str


FIRST: Final = Place(0, NOWHERE)


class Page(NamedTuple):
    """Those whose jobs have ended without their answer, and where the next page begins; None: this was the last."""

    ended: Sequence[Sent]
    behind: Place | None


@operation(alone=True, repeatable=True, writes="")
def ended_before_answered(after: Place, *, limit: int) -> Steps[Page]:
    """Look at so many of the attempts that wait."""
    rows = yield from execute("ended_worked", after_us=after.look_at_us, after_id=after.id, limit=limit)
    ended = [Sent(str(row[0]), as_int(row[1])) for row in rows if row[3]]
    behind = [Place(as_int(row[2]), str(row[0])) for row in rows if as_int(row[4]) == limit]
    return Page(ended, behind[0] if behind else None)


@operation()
def take(sent: Sent) -> Steps[bool]:
    """Be the one who tells its endpoint; false: somebody else is, or the job lives again."""
    return bool((yield from execute("take_ended_worked", **sent._asdict())))


class CancelTeller(Chore):
    """Tells endpoints of cancelled attempts. One whose request was under way is told by who ran it; one that had said
    that it answers later is nobody's, so each worker looks for those, once a second where few wait. `page_rows`: how
    many it looks at in one statement."""

    name = "worked-over-http-cancels"

    def __init__(self, app: JobsApp, *, page_rows: int = PAGE_ROWS) -> None:
        self._app = app
        self._page_rows = page_rows
        self._under_way: set[asyncio.Task[None]] = set()
        self._none_of_ours: set[Sent] = set()

    async def tick(self) -> float:
        """Look at all that wait, page by page; returns the pause until the next look."""
        began, met = time.monotonic(), set[Sent]()
        after: Place | None = FIRST
        while after is not None:
            page = await self._app.engine.arun(ended_before_answered(after, limit=self._page_rows))
            for sent in page.ended:
                if sent not in self._none_of_ours:
                    await self._look(sent)
            met.update(page.ended)
            after = page.behind
        self._none_of_ours &= met
        return max(LOOK_S, RESTS * (time.monotonic() - began))

    async def end(self, within_s: float) -> None:
        """Let what is under way end."""
        loop = asyncio.get_running_loop()
        mine = [each for each in self._under_way if each.get_loop() is loop]
        if mine:
            _, left = await asyncio.wait(mine, timeout=within_s)
            for each in left:
                each.cancel()

    def interrupted(self, sent: Sent) -> None:
        """The request of this attempt was broken off: tell its endpoint if that was a cancel. Waits for nothing."""
        self._begin(self._tell_if_cancelled(sent))

    async def _tell_if_cancelled(self, sent: Sent) -> None:
        record = await self._app.client.aget(sent.id)
        endpoint = self._endpoint_of(record)
        is_asked = record.cancel_requested_at_us is not None or record.state is State.CANCELLED
        if endpoint is not None and is_asked and record.attempt == sent.attempt:
            await _post(endpoint, record, sent.attempt, self._app)

    async def _look(self, sent: Sent) -> None:
        try:
            record = await self._app.client.aget(sent.id)
        except (JobNotFound, JobGone):
            self._none_of_ours.add(sent)
            return
        endpoint = self._endpoint_of(record)
        if endpoint is None or record.state is not State.CANCELLED:
            self._none_of_ours.add(sent)
        elif await self._app.engine.arun(take(sent)):
            self._begin(_post(endpoint, record, sent.attempt, self._app))

    def _endpoint_of(self, record: JobRecord) -> WorkedEndpoint | None:
        working = worked_by(self._app).get(record.name)
        return None if working is None or working.endpoint.cancel_url is None else working.endpoint

    def _begin(self, telling: Coroutine[Any, Any, None]) -> None:
        if len(self._under_way) >= AT_ONCE_MAX:
            telling.close()
            log.warning("an endpoint is not told of a cancel: %d are being told", AT_ONCE_MAX)
            return
        task = asyncio.create_task(_logged(telling), name="fencerow-worked-cancelled")
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)


async def _logged(telling: Coroutine[Any, Any, None]) -> None:
    try:
        await telling
    except FencerowError as error:
        log.warning("an endpoint was not told of a cancel: %s", error)
    except Exception:
        log.exception("an endpoint was not told of a cancel")


async def _post(endpoint: WorkedEndpoint, record: JobRecord, attempt: int, app: JobsApp) -> None:
    from fencerow.web.webhooks.posting import post  # with h11: only where something is sent
    from fencerow.web.webhooks.signing import signed_headers

    assert endpoint.cancel_url is not None
    body = body_of(record, attempt, datetime.now(UTC))
    headers = signed_headers(f"{record.id}:{attempt}:cancelled", int(time.time()), body, endpoint.signers())
    reply = await post(endpoint.cancel_url, body, headers, timeout_s=REPLY_S, allow=allowed_of(app.config))
    if not 200 <= reply.status < 300:
        log.warning("the endpoint of job %s answered %d when told of its cancel", record.id, reply.status)


def body_of(record: JobRecord, attempt: int, now: datetime) -> bytes:
    """The JSON text: `type`, `timestamp`, `data`, as the request of an attempt has it."""
    data = {"job": record.id, "name": record.name, "queue": record.queue, "attempt": attempt}
    return msgspec.json.encode({"type": TYPE, "timestamp": iso(now), "data": data})


def teller_of(app: JobsApp) -> CancelTeller:
    """The one of this app; the first time it is added to its chores."""
    found = next((each for each in app.chores if isinstance(each, CancelTeller)), None)
    if found is None:
        found = CancelTeller(app)
        app.add_chore(found)
    return found
