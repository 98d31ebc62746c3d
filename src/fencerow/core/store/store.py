"""Every verb of the system on one screen. Each returns an `Operation`; an engine runs it, or a test explores it.

engine.run(store.claim("mail", [Mark(0)], holder=me, names=["send"], limit=10, margin_s=60))
"""

from __future__ import annotations

from fencerow.core.store.attempts import (
    Failure as Failure,
    MovedAndMade as MovedAndMade,
    Requeue as Requeue,
    Stop as Stop,
    Success as Success,
    fail as fail,
    read_fences as read_fences,
    requeue as requeue,
    stop as stop,
    succeed as succeed,
    succeed_alone as succeed_alone,
    succeed_first as succeed_first,
    existing as existing,
    mark_awaited as mark_awaited,
    outcomes as outcomes,
)
from fencerow.core.store.claims import (
    Mark as Mark,
    any_due as any_due,
    claim as claim,
    claim_suspect as claim_suspect,
    fetch_args as fetch_args,
    lanes as lanes,
)
from fencerow.core.schema.migrate import (
    check_schema as check_schema,
    ledger as ledger,
    migrate as migrate,
)
from fencerow.core.store.moves import (
    cancel as cancel,
    delete as delete,
    expire as expire,
    revive as revive,
)
from fencerow.core.store.notes import (
    bound_idle as bound_idle,
    check_fence as check_fence,
    hold_fence as hold_fence,
    log as log,
    progress as progress,
)
from fencerow.core.store.following import (
    FollowedSuccess as FollowedSuccess,
    succeed_with_follow_ups as succeed_with_follow_ups,
)
from fencerow.core.store.orders import (
    order_worker as order_worker,
    ordering as ordering,
)
from fencerow.core.store.unmoved import (
    fail_in_place as fail_in_place,
    move_late as move_late,
    unmoved as unmoved,
)
from fencerow.core.store.passed_over import claim_passed_over as claim_passed_over
from fencerow.core.store.read import (
    clock as clock,
    key_owner as key_owner,
    read as read,
    releases as releases,
)
from fencerow.core.store.reap import (
    Crash as Crash,
    Reclaimed as Reclaimed,
    adopt as adopt,
    crash as crash,
    dead_holders as dead_holders,
    die as die,
    die_ahead as die_ahead,
    leases_ahead as leases_ahead,
    lost_holders as lost_holders,
    note_alone as note_alone,
    reclaim as reclaim,
    time_out as time_out,
)
from fencerow.core.store.ring import ring as ring
from fencerow.core.store.submit import (
    resubmit as resubmit,
    submit as submit,
    submit_alike as submit_alike,
    submit_by_copy as submit_by_copy,
    submit_gated as submit_gated,
    submit_one as submit_one,
    submit_with_turn as submit_with_turn,
)
from fencerow.core.store.suspending import (
    SuspendedAttempt as SuspendedAttempt,
    suspend as suspend,
    wake as wake,
    wake_whose_wait_is_over as wake_whose_wait_is_over,
)
from fencerow.core.schema.rooms import known_migrations as known_migrations
from fencerow.core.store.tables import (
    postgres_queries as postgres_queries,
    sqlite_queries as sqlite_queries,
)
from fencerow.core.store.storing import (
    resubmit_asked as resubmit_asked,
    submit_asked as submit_asked,
)
from fencerow.core.store.workers import (
    describe_worker as describe_worker,
    holdings as holdings,
    last_renewal as last_renewal,
    list_workers as list_workers,
    register as register,
    renew as renew,
    retire as retire,
    server_identity as server_identity,
    unaware_workers as unaware_workers,
)
