"""Webhooks of other systems: each becomes one job, stored before it is answered.

What decides whether it comes again is the idempotency key of the job's own submit, so one insert does both: the job is
there if, and only if, its id is remembered.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import Any, Final

from fencerow.app import App
from fencerow.core.errors import InvalidInput, KeyConflict
from fencerow.errors import InboundRefused, InboundUnfit
from fencerow.web.errors import TooLate, UnderMaintenance, Unready
from fencerow.web.gateway.foreign import carried
from fencerow.web.gateway.problem import OF_DATABASE
from fencerow.web.gateway.route import Answer, Call, Route
from fencerow.web.gateway.shapes import Told
from fencerow.web.gateway.submitting import STORED, TRACE
from fencerow.web.inbound.declared import Hook, hooks_of
from fencerow.web.inbound.scheme import Came
from fencerow.web.reading.strict import Bounds
from fencerow.web.settings import WebSettings
from fencerow.web.tallies.counting import HookTallies

HOOKS: Final = "/v1/hooks"
ANSWER_S: Final = 7.0  # GitHub gives a webhook up after ten seconds, and does not send it again by itself


class Received(Told, frozen=True):
    """The job that a webhook became; `repeated`: it had come before, and nothing was stored now."""

    job: str
    repeated: bool


def hook_routes(app: App, base: str, tallies: HookTallies) -> Sequence[Route]:
    """A route for each place that the app has declared for webhooks of others. `tallies` counts what comes.

    Raises:
        SecretMissing: one of them has no secret in the environment.
    """
    bounds = Bounds.of(WebSettings.of(app.config))
    return [_route(hook, base, Receiving(hook, bounds, tallies)) for hook in hooks_of(app)]


def _route(hook: Hook, base: str, receiving: Receiving) -> Route:
    return Route(
        "POST", f"{base}/{hook.name}", f"receive-{hook.name}", receiving, None, {202: Received},
        is_raw=True, tag="hooks", accepts=TRACE,
        refusals=(InboundRefused, InboundUnfit, *STORED, TooLate, Unready, UnderMaintenance, *OF_DATABASE),
    )  # fmt: skip


class Receiving:
    """Take a webhook of another system as a job. Its signature is the proof of who sent it: no token is asked for.

    It is answered when the job is stored, never before. A webhook that comes again under its id is answered alike.
    """

    def __init__(self, hook: Hook, bounds: Bounds, tallies: HookTallies) -> None:
        self._hook = hook
        self._bounds = bounds
        self._tallies = tallies
        self._keys: Sequence[Any] = hook.scheme.keys()

    async def __call__(self, call: Call) -> Answer:
        """Verify it, then read it, then store it. Nothing of what strangers send is parsed."""
        hook = self._hook
        came = Came(call.headers, call.body, time.time(), self._bounds)
        try:
            prepared = hook.call(hook.scheme.read(self._keys, came), call.headers, carried(call))
        except (InboundRefused, InvalidInput) as error:
            self._tallies.refused(hook.name, error.what)
            raise
        limit = asyncio.timeout(ANSWER_S)
        try:
            async with limit:
                handle = await call.app.submits_as(f"webhook {hook.name}").asubmit(prepared)
        except KeyConflict as error:
            # Its id decides, not its bytes: a sender signs a repeat anew, and may tell it in other words.
            return self._took(error.job_id, repeated=True)
        except TimeoutError:
            if not limit.expired():
                raise
            raise _too_late() from None
        return self._took(handle.id, repeated=handle.replay)

    def _took(self, job_id: str, *, repeated: bool) -> Answer:
        self._tallies.took(self._hook.name, repeated=repeated)
        return _answered(job_id, repeated=repeated)


def _answered(job_id: str, *, repeated: bool) -> Answer:
    headers = {"idempotent-replayed": "true"} if repeated else {}
    return Answer(202, Received(job=job_id, repeated=repeated), headers)


def _too_late() -> TooLate:
    return TooLate(
        f"the webhook was not known to be stored within {ANSWER_S:g} s",
        "it may be stored",
        "send it again under its id",
    )
