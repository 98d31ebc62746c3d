"""What a remote client says to jobs and learns of their steps: what `Client` has for them beside the database."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from fencerow.core.model.ids import new_id, parse_id
from fencerow.core.verb import averb, verb
from fencerow.web.gateway.step_shapes import (
    RevivedFrom,
    SignalDocument,
    SignalList,
    SignalSent,
    StepDocument,
    StepList,
    StepSummary,
    WaitDocument,
)
from fencerow.web.remote.base import RemoteBase
from fencerow.web.remote.exchange import Exchange, Remote, Reply
from fencerow.web.remote.handle import RemoteHandle

Ref = str | RemoteHandle


class RemoteSteps(RemoteBase):
    """Each method has an async twin with an `a` in front. A job is named by its handle or its id."""

    @verb
    def signal(
        self, ref: Ref, name: str, data: Any = None, *, signal_id: str | None = None
    ) -> Remote[SignalSent]:
        """Send a signal to a job: `job.wait_for(name)` gets its `data`, JSON of at most 64 KiB, once.

        What is lost is sent again, and kept once. A signal that you repeat yourself has the same `signal_id`, which is
        any text of your own for this one signal.

        Raises:
            SignalRefused: the job has ended, or has too many signals that it has not taken. Nothing is kept.
            KeyConflict: another signal was sent to it under this `signal_id`.
            InvalidInput: no signal can have such a name, or `data` cannot be kept.
            JobNotFound: there is no such job, or not for this token.
        """
        exchange = Exchange(
            "POST",
            f"{_address(ref)}/signals/{quote(name, safe='')}",
            document={"data": data},
            headers={"idempotency-key": f'"{quoted(new_id() if signal_id is None else signal_id)}"'},
        )
        reply: Reply = yield from self.asking(exchange)
        return reply.decoded(SignalSent)

    asignal = averb(signal)

    @verb
    def revive_from(self, ref: Ref, step: str) -> Remote[list[str]]:
        """Queue a finished job again, which does this step and all behind it anew; returns what it has forgotten.

        Raises:
            InvalidInput: it remembers no such step. IllegalMove: it has not ended. Nothing is changed.
            JobNotFound: there is no such job, or not for this token.
        """
        exchange = Exchange("POST", f"{_address(ref)}/revive-from", document={"step": step})
        reply: Reply = yield from self.asking(exchange)
        return reply.decoded(RevivedFrom).forgotten

    arevive_from = averb(revive_from)

    @verb
    def steps(self, ref: Ref) -> Remote[list[StepSummary]]:
        """What a job remembers of its run, in the order in which it was asked for, without results."""
        return (yield from self._remembered(ref)).steps

    asteps = averb(steps)

    @verb
    def waits(self, ref: Ref) -> Remote[list[WaitDocument]]:
        """What a suspended job waits for; empty if it is not."""
        return (yield from self._remembered(ref)).waits

    awaits = averb(waits)

    @verb
    def step(self, ref: Ref, name: str) -> Remote[StepDocument]:
        """One step that a job remembers, with its result.

        Raises:
            InvalidInput: it remembers no such step. JobNotFound: there is no such job, or not for this token.
        """
        exchange = Exchange("GET", f"{_address(ref)}/steps/show", query={"name": name})
        reply: Reply = yield from self.asking(exchange)
        return reply.decoded(StepDocument)

    astep = averb(step)

    @verb
    def signals(self, ref: Ref) -> Remote[list[SignalDocument]]:
        """The signals that were sent to a job, in order, taken or not, without their data."""
        reply: Reply = yield from self.asking(Exchange("GET", f"{_address(ref)}/signals"))
        return reply.decoded(SignalList).signals

    asignals = averb(signals)

    def _remembered(self, ref: Ref) -> Remote[StepList]:
        reply: Reply = yield from self.asking(Exchange("GET", f"{_address(ref)}/steps"))
        return reply.decoded(StepList)


def quoted(key: str) -> str:
    """A key as it stands between the quotes of its header."""
    return key.replace("\\", "\\\\").replace('"', '\\"')


def _address(ref: Ref) -> str:
    return f"/v1/jobs/{parse_id(ref) if isinstance(ref, str) else ref.id}"
