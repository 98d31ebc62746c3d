"""The keys of unique jobs: which have a job, and which are to be forgotten."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from fencerow.core.model.job import At, AtOrNone
from fencerow.core.store.idempotency import Pair
from fencerow.db.removal import Looked
from fencerow.db.run import Steps, as_int, as_int_or_none, execute, operation
from fencerow.unique.uniting import as_pairs


class UniqueKey(msgspec.Struct, frozen=True):
    """A key under which submits find a job since `first_us`: until it has ended or started, as their rule says, or
    until `until_us`, whatever becomes of it. Instants are microseconds since 1970."""

    scope: str
    key: str
    first_us: int
    until_us: int | None

    first = At("first_us")
    until = AtOrNone("until_us")


@operation(alone=True, repeatable=True, writes="")
def unique_keys_of(ids: Sequence[str]) -> Steps[dict[str, list[UniqueKey]]]:
    """The unique keys under which submits find these jobs: of a job mostly one, or none."""
    found: dict[str, list[UniqueKey]] = {}
    for job_id, scope, key, first_us, until_us in (yield from execute("unique_keys_of", ids=list(ids))):
        one = UniqueKey(str(scope), str(key), as_int(first_us), as_int_or_none(until_us))
        found.setdefault(str(job_id), []).append(one)
    return found


@operation(repeatable=True)
def purge_unique(after: Pair, *, limit: int) -> Steps[Looked[Pair]]:
    """Forget keys whose job is gone and whose period is over, among so many after this one.

    It goes on after ("", "") when that was the last. Locks such a row before it looks at its job once
    more: a DELETE that waited for a row would not look at other rows a second time. Locked ones are left for later.
    """
    rows = yield from execute("next_unique", scope=after[0], key=after[1], limit=limit)
    over = [(str(scope), str(key)) for scope, key, is_over in rows if is_over]
    gone = 0
    if over:
        locked = yield from execute("lock_over", pairs=as_pairs(over))
        pairs = as_pairs([(str(scope), str(key)) for scope, key in locked])
        gone = len((yield from execute("purge_unique", pairs=pairs)))
    last = (str(rows[-1][0]), str(rows[-1][1])) if len(rows) == limit else ("", "")
    return Looked(last, len(rows), gone)
