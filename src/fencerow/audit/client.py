"""`client.audit`: reads who changed what by hand; sync and async."""

from __future__ import annotations

from datetime import datetime

from fencerow.audit.entry import TARGET_LENGTH_MAX, TEXT_LENGTH_MAX, Entry
from fencerow.audit.operations import read_entries
from fencerow.core.client.base import Verbs
from fencerow.core.errors import InvalidInput
from fencerow.core.verb import averb, verb
from fencerow.db.run import Procedure, ask
from fencerow.db.text import check_text

LIMIT_MAX = 10_000


class AuditVerbs(Verbs):
    """Reads the audit log. Each method has an async twin with an `a` in front."""

    @verb
    def entries(
        self,
        *,
        target: str | None = None,
        kind: str | None = None,
        person: str | None = None,
        since: datetime | None = None,
        before: int | None = None,
        limit: int = 100,
    ) -> Procedure[list[Entry]]:
        """A page of what people changed by hand, the newest first.

        `target`: the id or the name of what was changed; of what was changed together with others, that of the first
        one. `kind`: such as job, queue or limit. `since`: an aware datetime. `before`: the id of the last entry of the
        page before.

        Raises:
            InvalidInput: a filter cannot be used, `since` has no zone, or the limit is not from 1 to 10,000.
        """
        for value, what, longest in (
            (target, "target", TARGET_LENGTH_MAX),
            (kind, "kind", TEXT_LENGTH_MAX),
            (person, "person", TEXT_LENGTH_MAX),
        ):
            if value is not None:
                check_text(value, what, longest)
        wanted = read_entries(
            target=target,
            kind=kind,
            person=person,
            since_us=_since_us(since),
            before=_whole(before, "before", 2**63 - 1),
            limit=_whole(limit, "limit", LIMIT_MAX) or 100,
        )
        return (yield from ask(wanted))

    aentries = averb(entries)


def _since_us(since: object) -> int | None:
    if since is None:
        return None
    if not isinstance(since, datetime) or since.utcoffset() is None:
        raise InvalidInput(
            f"since is {since!r}", "a datetime with its zone is expected", "pass datetime.now(UTC) - ..."
        )
    return round(since.timestamp() * 1e6)


def _whole(value: object, what: str, most: int) -> int | None:
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= most:
        raise InvalidInput(
            f"{what} is {value!r:.60}", f"a whole number from 1 to {most} is expected", "change it"
        )
    return value
