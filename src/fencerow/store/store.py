"""Every verb of the system on one screen. Each returns an `Operation`; an engine runs it, or a test explores it.

engine.run(store.claim("mail", [Mark(0)], holder=me, names=["send"], limit=10, margin_s=60))
"""

from __future__ import annotations

from fencerow.store.claim import Mark, claim, claim_suspect, fetch_args, lanes
from fencerow.store.disown import disown
from fencerow.store.finish import (
    Failure,
    Moved,
    Requeue,
    Requeued,
    Stop,
    Success,
    fail,
    read_fences,
    requeue,
    stop,
    succeed,
)
from fencerow.store.migrate import check_schema, ledger, migrate
from fencerow.store.moves import Cancelled, cancel, delete, expire, revive
from fencerow.store.notes import check_fence, log, progress
from fencerow.store.queues import PausedQueue, pause_queue, paused_queues, resume_queue
from fencerow.store.read import (
    Count,
    KeyOwner,
    ahead,
    clock,
    counts,
    events,
    existing,
    finished_counts,
    key_owner,
    list_jobs,
    logs,
    mark_awaited,
    outcomes,
    read,
)
from fencerow.store.reap import Reclaimed, adopt, dead_holders, die, reclaim, time_out
from fencerow.store.retention import purge_by_age, purge_by_count, purge_by_own_age, purge_keys
from fencerow.store.submit import Submitted, resubmit, submit, submit_keyed
from fencerow.store.tables import known_migrations, postgres_queries, sqlite_queries
from fencerow.store.workers import Holding, forget_workers, holdings, list_workers, register, renew, retire

__all__ = [
    "Cancelled",
    "Count",
    "Failure",
    "Holding",
    "KeyOwner",
    "Mark",
    "Moved",
    "PausedQueue",
    "Reclaimed",
    "Requeue",
    "Requeued",
    "Stop",
    "Submitted",
    "Success",
    "adopt",
    "ahead",
    "cancel",
    "check_fence",
    "check_schema",
    "claim",
    "claim_suspect",
    "clock",
    "counts",
    "dead_holders",
    "delete",
    "die",
    "disown",
    "events",
    "existing",
    "expire",
    "fail",
    "fetch_args",
    "finished_counts",
    "forget_workers",
    "holdings",
    "key_owner",
    "known_migrations",
    "lanes",
    "ledger",
    "list_jobs",
    "list_workers",
    "log",
    "logs",
    "mark_awaited",
    "migrate",
    "outcomes",
    "pause_queue",
    "paused_queues",
    "postgres_queries",
    "progress",
    "purge_by_age",
    "purge_by_count",
    "purge_by_own_age",
    "purge_keys",
    "read",
    "read_fences",
    "reclaim",
    "register",
    "renew",
    "requeue",
    "resubmit",
    "resume_queue",
    "retire",
    "revive",
    "sqlite_queries",
    "stop",
    "submit",
    "submit_keyed",
    "succeed",
    "time_out",
]
