"""What belongs to the writing of new jobs: said once, whoever writes them and in which form."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from fencerow.core.model.job import NewJob
from fencerow.core.store.gating import gating
from fencerow.core.store.terms import keep_terms
from fencerow.db.run import Steps


def store_jobs(
    jobs: Iterable[NewJob], write: Steps[Collection[str]], *, again: bool = False
) -> Steps[Collection[str]]:
    """Let `write` write the jobs, and do what else their submit writes, in its transaction; part of other operations.

    Before it they say where they wait; after it the wings write what they keep of those whose ids it returns.
    `again`: what wings keep of them may be there already. Jobs that write no more than their row cost nothing.
    Returns what `write` does.

    Raises:
        FencerowError: one of them may not come to where it would wait. Nothing was written.
        ConfigError: one of them has a term that no wing writes. The transaction must be undone.
    """
    more = [job for job in jobs if job.writes_more]
    if not more:
        return (yield from write)
    if any(job.needs_turn for job in more):
        yield from gating().come(more)
    ids = yield from write
    written = set(ids)
    yield from keep_terms([job for job in more if job.terms and job.id in written], again=again)
    return ids
