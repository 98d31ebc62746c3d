"""`Client`: what the core and the wings can do for who holds no app, in one object."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fencerow.core.answering import answer
from fencerow.core.client.client import JobsClient
from fencerow.core.client.refs import CancelAnswer
from fencerow.core.model.change import JobChanged
from fencerow.db.run import Procedure
from fencerow.handovers.terms import DEFAULT_RECEIVER
from fencerow.operators.change_verbs import ChangeVerbs
from fencerow.operators.job_verbs import JobVerbs
from fencerow.operators.queue_verbs import QueueVerbs
from fencerow.output.client import OutputReads
from fencerow.steps.client import SignalVerbs

if TYPE_CHECKING:
    from fencerow.audit.client import AuditVerbs
    from fencerow.flows.client import FlowVerbs
    from fencerow.guards.mutex.client import Mutexes
    from fencerow.handovers.client import Receiver
    from fencerow.limits.client import LimitVerbs
    from fencerow.operators.share_verbs import ShareVerbs
    from fencerow.operators.workers import Workers
    from fencerow.schedules.verbs import ScheduleVerbs
    from fencerow.turns.client import ExclusiveVerbs
    from fencerow.web.maintenance.client import MaintenanceVerbs
    from fencerow.web.tokens.client import TokenVerbs

__all__ = ["CancelAnswer", "Client", "JobChanged"]


@answer
class Client(JobsClient, JobVerbs, ChangeVerbs, QueueVerbs, SignalVerbs, OutputReads):
    """Submits jobs, reads them and their output, waits for them, signals them and changes their state; pauses queues;
    `audit`, `exclusive`, `flows`, `handovers`, `limits`, `shares`, `workers`, `mutexes`, `schedules`, `tokens` and
    `maintenance` are for operators.

    Name a job by its id, or by `Key(scope, key)`. Threads and event loops can share one client. `ready` is
    called before the database is first used. Close the client when done: it may have a thread that waits for
    results.
    """

    @property
    def workers(self) -> Workers:
        """Looks at workers and gives them orders. Each method has an async twin with an `a` in front."""
        from fencerow.operators.workers import Workers  # who asks for none never loads it

        return Workers(self)

    @property
    def mutexes(self) -> Mutexes:
        """Looks at mutexes, and frees those that somebody else holds. Each method has an async twin with an `a` in
        front."""
        from fencerow.guards.mutex.client import Mutexes  # who asks for none never loads it

        return Mutexes(self)

    @property
    def audit(self) -> AuditVerbs:
        """Reads what people changed by hand."""
        from fencerow.audit.client import AuditVerbs  # who asks for none never loads it

        return AuditVerbs(self)

    @property
    def exclusive(self) -> ExclusiveVerbs:
        """Looks at exclusive keys: who has their turns, and who waits for one."""
        from fencerow.turns.client import ExclusiveVerbs  # who asks for none never loads it

        return ExclusiveVerbs(self)

    @property
    def flows(self) -> FlowVerbs:
        """Finds flows again, and reads what jobs of one waited for; `App.flow` makes them."""
        from fencerow.flows.client import FlowVerbs  # who has none never loads it

        return FlowVerbs(self)

    def handovers(self, receiver: str = DEFAULT_RECEIVER) -> Receiver:
        """Takes the ends of jobs that are handed over to this receiver, and confirms them.

        Raises:
            InvalidInput: no receiver can have such a name.
        """
        from fencerow.handovers.client import Receiver  # who takes none never loads it

        return Receiver(self, receiver)

    @property
    def limits(self) -> LimitVerbs:
        """Looks at limits, makes them, and changes them."""
        from fencerow.limits.client import LimitVerbs  # who asks for none never loads it

        return LimitVerbs(self)

    @property
    def shares(self) -> ShareVerbs:
        """Looks at who shares a queue, and sets the weights of shares."""
        from fencerow.operators.share_verbs import ShareVerbs  # who asks for none never loads it

        return ShareVerbs(self)

    @property
    def schedules(self) -> ScheduleVerbs:
        """Looks at schedules, pauses, runs and removes them; `App.schedules` makes them as well."""
        from fencerow.schedules.verbs import ScheduleVerbs  # who schedules nothing never loads it

        return ScheduleVerbs(self)

    @property
    def tokens(self) -> TokenVerbs:
        """Makes API tokens, lists and revokes them."""
        from fencerow.web.tokens.client import TokenVerbs  # who lets nobody in over HTTP never loads it

        return TokenVerbs(self)

    @property
    def maintenance(self) -> MaintenanceVerbs:
        """Lets the gateways take no requests for a while."""
        from fencerow.web.maintenance.client import MaintenanceVerbs  # who serves no HTTP never loads it

        return MaintenanceVerbs(self)

    def why_waiting(self, job_id: str) -> Procedure[str]:
        """Why a job has not ended, in a few words: the short form of `fencerow why`."""
        from fencerow.doctor.why import briefly  # who asks for none never loads it

        return briefly(job_id)
