"""What `Client` is given for steps and signals: `signal`, `revive_from`, `waits`, `steps` and `signals`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fencerow.core.client.base import ClientBase
from fencerow.core.client.refs import Ref, resolving
from fencerow.core.verb import averb, verb
from fencerow.db.run import Procedure, ask

if TYPE_CHECKING:
    from fencerow.core.model.seconds import Seconds
    from fencerow.steps.approvals import Approval
    from fencerow.steps.model import JobWait, SentSignal, Step
    from fencerow.steps.signals import SignalAnswer


class SignalVerbs(ClientBase):
    """Each method has an async twin with an `a` in front."""

    @verb
    def signal(
        self,
        ref: Ref,
        name: str,
        data: Any = None,
        *,
        signal_id: str | None = None,
        connection: object | None = None,
    ) -> Procedure[SignalAnswer]:
        """Send a signal to a job: `job.wait_for(name)` gets its `data`, JSON of at most 64 KiB, once.

        It is kept if the job does not wait for it yet, up to 100 for a job. With `connection` it is part of the
        transaction that is open there, which locks the job's row until it ends. A signal whose answer was lost is sent
        again with the same `signal_id`, a UUID of the caller's own for this one signal: it is kept once.

        Raises:
            SignalRefused: the job has ended, has too many signals that it has not taken, or the id is that of a signal
                to another job. Nothing is kept.
            InvalidInput: no signal can have such a name, or `data` cannot be kept as JSON.
            JobNotFound: there is no such job. Busy: a transaction of somebody's locks the job. Send it again.
        """
        from fencerow.steps.signals import signalling  # who sends none never loads it

        return (yield from signalling(ref, name, data, signal_id, self.actor, connection))

    asignal = averb(signal)

    @verb
    def approval(
        self, ref: Ref, name: str, asks: str, *, base_url: str, expires_s: Seconds = 7 * 24 * 3600.0
    ) -> Procedure[Approval]:
        """Ask a person: makes an address below `base_url`, that of a gateway, which answers once, yes or no.

            async def ask(job_id: str, sum: str) -> None:       # a step of the job
                found = await client.aapproval(job_id, "approved", f"Pay {sum}?", base_url="https://jobs.example.com")
                await mail("ada@example.com", found.address)

            await job.step("ask", ask, job.id, "500 EUR")
            answer = await job.wait_for("approved", timeout_s=7 * 24 * 3600)
            if answer["yes"]: ...

        The page there shows what is asked and two buttons; to open it changes nothing. The answer is the signal `name`,
        with `{"yes": true}` or false. Of several addresses for one signal of a job one answer counts. An address is a
        secret: whoever has it may answer. It is kept nowhere, so let no step return it.

        Raises:
            InvalidInput: no signal can have such a name, or what is asked, the address or `expires_s` cannot be used.
            SignalRefused: the job has ended, or 100 things were asked for it. JobNotFound: there is no such job.
        """
        from fencerow.steps.approvals import approving

        return (yield from approving(ref, name, asks, base_url, expires_s, self.actor))

    aapproval = averb(approval)

    @verb
    def answer_approval(
        self, address: str, *, yes: bool, by: str | None = None, comment: str | None = None
    ) -> Procedure[None]:
        """Answer what an address of `approval` asks, once, as its page does: for a page, a bot or a button of your own.

        `by` and `comment` reach the job beside `yes`; only you know whether `by` is true.

        Raises:
            ApprovalUnknown: there is no such address. ApprovalOver: it was used, has expired, or its job waits
                no longer. InvalidInput: the name or the comment cannot be kept. Nothing is changed.
            Busy: a transaction of somebody's locks the job. Answer again.
        """
        from fencerow.steps.approvals import answering, ticket_of

        ticket = ticket_of(str(address).rpartition("/")[2])
        yield from answering(ticket, yes=yes, actor=self.actor, by=by, comment=comment)

    aanswer_approval = averb(answer_approval)

    @verb
    def revive_from(self, ref: Ref, step: str, *, reason: str | None = None) -> Procedure[list[str]]:
        """Queue a finished job again: it repeats this step and all behind it, and remembers those before.

        Returns the names of what it has forgotten: steps, sleeps and waits, with the signals that these took.

        Raises:
            InvalidInput: it remembers no such step. Nothing is changed. And as `revive`.
        """
        from fencerow.steps.reviving import reviving_from

        return (yield from reviving_from(ref, step, self.actor, reason))

    arevive_from = averb(revive_from)

    @verb
    def waits(
        self, ref: Ref | None = None, *, signal: str | None = None, limit: int = 100
    ) -> Procedure[list[JobWait]]:
        """What suspended jobs wait for, those first whose time comes first: of one job, for one signal, or of all.

        Raises:
            InvalidInput: the id is none.
        """
        from fencerow.steps.memory import waiting_for

        job_id = None if ref is None else (yield from resolving(ref))
        return (yield from ask(waiting_for(job_id, signal=signal, limit=limit)))

    awaits = averb(waits)

    @verb
    def steps(self, ref: Ref) -> Procedure[list[Step]]:
        """What a job remembers of its run, in the order in which it was asked for; none of a job that is not there."""
        from fencerow.steps.memory import steps_of

        return (yield from ask(steps_of((yield from resolving(ref)))))

    asteps = averb(steps)

    @verb
    def signals(self, ref: Ref) -> Procedure[list[SentSignal]]:
        """The signals that were sent to a job, in order, taken or not; none of a job that is not there."""
        from fencerow.steps.signals import signals_of

        return (yield from ask(signals_of((yield from resolving(ref)))))

    asignals = averb(signals)
