"""What a lent PostgreSQL connection needs under REPEATABLE READ and above, where a transaction sees only the past."""

from __future__ import annotations

from fencerow.core.db.adapters.frame import Lent, Plan, Sent
from fencerow.core.db.run import Rows, Statement
from fencerow.core.errors import UnusableConnection

FROZEN = ("repeatable read", "serializable")


class LentPostgres(Lent):
    """Refuses a statement that must see what was committed until now, in whatever operation it stands.

    Such is the look of a repeated submit, or of one under an id of the caller's own: the job's live row would be gone,
    so the insert would meet nothing, and its finished row would not be visible yet: it would run a second time.
    Submits under a key alone need no such care: the end of a job stamps its key, and meeting a key changed since the
    snapshot is a serialization failure.
    """

    def statement(self, statement: Statement) -> Plan[Rows]:
        if statement.fresh and (yield from self._frozen()):
            raise UnusableConnection(
                "a submit of an id that may be known cannot be made inside a transaction of this isolation level",
                "it would not see that a job of this id has run since the transaction began",
                "submit it in READ COMMITTED, or without connection=",
            )
        return (yield from super().statement(statement))

    def _frozen(self) -> Plan[bool]:
        rows = yield Sent("SHOW transaction_isolation")
        return str(rows[0][0]) in FROZEN
