"""What a lent PostgreSQL connection needs under REPEATABLE READ and above, where a transaction sees only the past."""

from __future__ import annotations

from fencerow.db.adapters.frame import Lent, Plan, Sent
from fencerow.db.statement import Operation, T
from fencerow.errors import UnusableConnection

FROZEN = ("repeatable read", "serializable")


class LentPostgres(Lent):
    """Refuses to repeat a submit where it could not see that the job has finished since the snapshot.

    The job's live row would be gone, so the insert would meet nothing, and its finished row would not be
    visible yet: it would run a second time. Keyed submits need no such care: the end of a job stamps its
    key, and meeting a key changed since the snapshot is a serialization failure.
    """

    def body(self, operation: Operation[T]) -> Plan[T]:
        if operation.name == "resubmit" and (yield from self._frozen()):
            raise UnusableConnection(
                "a submit cannot be repeated inside a transaction of this isolation level",
                "it would not see that the first one has run since the transaction began",
                "repeat it in READ COMMITTED, or without connection=",
            )
        return (yield from super().body(operation))

    def _frozen(self) -> Plan[bool]:
        rows = yield Sent("SHOW transaction_isolation")
        return str(rows[0][0]) in FROZEN
