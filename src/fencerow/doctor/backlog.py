"""What lies queued or held that should not: for both engines, through the store's own verbs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from datetime import UTC, datetime
from itertools import islice

from fencerow.core.config import CoreConfig
from fencerow.core.finding import Finding, fail, info, ok, warn
from fencerow.core.model.state import State, WorkerState
from fencerow.core.model.wanted import Failing
from fencerow.core.model.worker import WorkerRecord
from fencerow.core.store import store
from fencerow.db.engine import Engine
from fencerow.db.run import Steps, as_int, execute, operation
from fencerow.db.text import amount, argument
from fencerow.doctor.affinity import examine_labels
from fencerow.doctor.descriptors import examine_descriptors
from fencerow.doctor.losses import losses_of
from fencerow.operators import looking
from fencerow.operators.looking import Count
from fencerow.operators.queues import paused_queues

LATE_S = 300.0
LATE_PART = 0.5  # of the lease: three renewals were missed
SHOWN_MAX = 5
WORKERS_MAX = 1_000
AHEAD_US = 2_000_000  # a row that was renewed later than now


@operation(alone=True, repeatable=True, writes="", reads="both")
def orphans() -> Steps[tuple[int, float]]:
    """How many running jobs have a holder whose lease is over, and for how many seconds the oldest."""
    rows = yield from execute("orphans")
    return as_int(rows[0][0]), as_int(rows[0][1]) / 1e6


def living(engine: Engine) -> list[WorkerRecord]:
    """The workers that nobody has declared dead."""
    return engine.run(store.list_workers(state=WorkerState.ALIVE.value, limit=WORKERS_MAX))


def examine_backlog(engine: Engine, config: CoreConfig) -> Iterator[Finding]:
    """Paused queues, workers, expired leases, names nobody knows, and a backlog past its time."""
    alive = living(engine)
    counts = engine.run(looking.counts())
    yield from _paused(engine)
    yield from _paused_workers(alive)
    yield from _workers(alive, counts)
    yield from _failing(alive)
    yield from _blocked(alive)
    yield from examine_descriptors(alive)
    yield from _clock_gone_back(alive)
    yield from _losses(engine)
    yield from _orphans(engine, config)
    if len(alive) < WORKERS_MAX:
        yield from _unknown_names(alive, counts)
        yield from examine_labels(engine, alive)
    else:
        yield info(
            "workers",
            f"the newest {WORKERS_MAX} were looked at: what none of them serves, knows or carries another may, so "
            "queues, jobs and labels were not compared with them",
        )
    yield from _late(counts)


def _paused(engine: Engine) -> Iterator[Finding]:
    paused = engine.run(paused_queues())
    for queue in paused[:SHOWN_MAX]:
        by = f" by {queue.paused_by}" if queue.paused_by else ""
        reason = f": {queue.reason}" if queue.reason else ""
        yield warn(
            "paused queue",
            f"{queue.name} is paused{by}{reason}",
            f"`fencerow queues resume {argument(queue.name)}` when it may go on",
        )
    if len(paused) > SHOWN_MAX:
        more = amount(len(paused) - SHOWN_MAX, "queue is", "queues are")
        yield warn("paused queue", f"{more} paused beside these", "`fencerow queues` lists all")


def _paused_workers(alive: Sequence[WorkerRecord]) -> Iterator[Finding]:
    paused = [each for each in alive if each.stated is not None and each.stated.paused]
    for worker in paused[:SHOWN_MAX]:
        by = f" by {worker.wanted_by}" if worker.wanted_by else ""
        reason = f": {worker.wanted_reason}" if worker.wanted_reason else ""
        yield warn(
            "paused worker",
            f"{worker.name} is paused{by}{reason}",
            f"`fencerow workers resume {argument(worker.name)}` when it may go on",
        )


def _workers(alive: Sequence[WorkerRecord], counts: Sequence[Count]) -> Iterator[Finding]:
    live = [each for each in alive if each.lease_until_us > each.now_us]
    queued = sum(each.jobs for each in counts if each.state is State.QUEUED)
    if live:
        hosts = len({each.host for each in live})
        yield ok("workers", f"{len(live)} alive on {amount(hosts, 'host')}")
    elif queued:
        waiting = amount(queued, "job is", "jobs are")
        yield warn("workers", f"none is alive, and {waiting} queued", "start `fencerow worker`")
    else:
        yield info("workers", "none is alive, and nothing is queued")
    late = [each for each in live if each.now_us - each.renewed_at_us > each.lease_s * 1e6 * LATE_PART]
    if late:
        yield warn(
            "workers",
            f"{amount(len(late), 'has', 'have')} not renewed for half a lease, {late[0].name} first of all",
            "its log says why: code that keeps the interpreter lock belongs in a child process",
        )
    silent = len(alive) - len(live)
    if silent:
        yield warn(
            "workers",
            f"{amount(silent, 'has', 'have')} not renewed within a lease, and nobody has declared that dead",
            "start a worker: each looks after the others",
        )


def _failing(alive: Sequence[WorkerRecord]) -> Iterator[Finding]:
    """Work in the background that fails; mostly the same in every worker, so each is named once."""
    first: dict[str, tuple[WorkerRecord, Failing]] = {}
    for worker in alive:
        for failing in worker.stated.failing if worker.stated is not None else ():
            first.setdefault(failing.name, (worker, failing))
    for worker, failing in list(first.values())[:SHOWN_MAX]:
        yield warn(
            "background work",
            f"{failing.name} fails in worker {worker.name}, {amount(failing.tries, 'time')} in a row by now: "
            f"{failing.error}",
            "jobs go on without it, and it is tried again by itself; its worker's log has the traceback",
        )


def _blocked(alive: Sequence[WorkerRecord]) -> Iterator[Finding]:
    """Event loops that do not answer, or did not within the last minutes."""
    told = [(each, each.stated.blocked) for each in alive if each.stated is not None and each.stated.blocked]
    for worker, blocked in told[:SHOWN_MAX]:
        when = "was" if blocked.is_over else "is"
        yield warn(
            "blocked event loop",
            f"that of {worker.name} {when} blocked for {blocked.seconds:g} s by {blocked.by}, at {blocked.where}",
            "no other job there goes on meanwhile: "
            + (
                "run less beside it"
                if blocked.is_starved
                else "make that handler a plain def, or give what blocks to a thread"
            ),
        )


def _clock_gone_back(alive: Sequence[WorkerRecord]) -> Iterator[Finding]:
    """What workers state of the database's clock, and leases that were written before it went back."""
    said = [each for each in alive if each.stated is not None and each.stated.clock_behind_s > 0]
    ahead = [each for each in alive if each.renewed_at_us > each.now_us + AHEAD_US]
    if not said and not ahead:
        return
    behind_s = max(
        *(each.stated.clock_behind_s for each in said if each.stated),
        *((each.renewed_at_us - each.now_us) / 1e6 for each in ahead),
        0.0,
    )
    going = amount(len(said), "living worker continues", "living workers continue")
    yield warn(
        "clock went back",
        f"the database's clock went back by {behind_s:.0f} s; {going} the time "
        "before, so jobs that were due then are claimed",
        "find out what sets it; a worker that starts before the clock has caught up knows only the clock",
    )


def _losses(engine: Engine) -> Iterator[Finding]:
    """What workers have noticed: the database forgot what it had confirmed to them."""
    if not engine.traits.has_server:
        return
    records = engine.run(store.list_workers(limit=WORKERS_MAX))
    told = [(each, loss) for each in records for loss in losses_of(each.info)]
    for record, loss in told[:SHOWN_MAX]:
        yield fail(
            "lost commits",
            f"worker {record.name} found on {_moment(loss.noticed_us)} that the database has lost what it had "
            f"confirmed since {_moment(loss.kept_until_us)}, up to {_moment(loss.confirmed_until_us)} or later",
            "a failover or a restore lost it: submit the missing jobs again, see docs/postgresql.md",
        )
    if not told:
        yield ok("lost commits", "no worker has noticed any")


def _moment(us: int | None) -> str:
    return (
        "its registration"
        if us is None
        else datetime.fromtimestamp(us / 1e6, UTC).strftime("%Y-%m-%d %H:%M:%SZ")
    )


def _orphans(engine: Engine, config: CoreConfig) -> Iterator[Finding]:
    number, oldest_s = engine.run(orphans())
    bound_s = config.lease_s + config.sweep_s
    if not number:
        yield ok("leases", "no running job has a dead worker")
    elif oldest_s <= bound_s:
        yield info("leases", f"{number} running jobs have a dead worker; a living one takes them back soon")
    else:
        yield fail(
            "leases",
            f"{number} running jobs have a dead worker, the oldest for {oldest_s:.0f} s",
            f"within {bound_s:.0f} s a living worker takes them back: start one",
        )


def _unknown_names(alive: Sequence[WorkerRecord], counts: Sequence[Count]) -> Iterator[Finding]:
    # A worker makes these sets anew whenever it is asked, so none is asked for each count. Most workers are alike.
    said = {(each.queues, each.names) for each in alive if each.queues is not None and each.names is not None}
    if not said:
        return
    names = {name for _, known_there in said for name in known_there}
    known: dict[str, set[str]] = {}  # what the workers of each queue know
    for queues, known_there in said:
        for queue in queues:
            known.setdefault(queue, set()).update(known_there)
    waiting = [each for each in counts if each.state is State.QUEUED]
    yield from islice(filter(None, (_unknown_name(known, names, each) for each in waiting)), SHOWN_MAX)
    unserved = sorted({each.queue for each in waiting} - known.keys())
    if unserved:
        more = f" and {len(unserved) - SHOWN_MAX} more" if len(unserved) > SHOWN_MAX else ""
        named = f"{', '.join(unserved[:SHOWN_MAX])}{more}"
        yield warn("unserved queue", f"no living worker serves {named}", "add it to a worker's -Q")


def _unknown_name(known: Mapping[str, Set[str]], names: Set[str], count: Count) -> Finding | None:
    """Whether one worker knows the name and serves the queue, as far as that is not for want of the queue alone."""
    if count.name not in names:
        return warn(
            "unknown job",
            f"{count.jobs} queued jobs are named {count.name}, which no living worker knows",
            "deploy the code that declares it, or cancel them",
        )
    if count.queue not in known or count.name in known[count.queue]:
        return None
    return warn(
        "unknown job",
        f"{count.jobs} queued jobs in queue {count.queue} are named {count.name}, which no living worker of that "
        "queue knows",
        f"add {count.queue} to -Q of a worker that knows them, or deploy the code that declares them to its workers",
    )


def _late(counts: Sequence[Count]) -> Iterator[Finding]:
    late = [each for each in counts if each.state is State.QUEUED and _late_s(each) > LATE_S]
    fix = "add slots or workers; `fencerow why ID` looks at one job"
    for each in sorted(late, key=_late_s, reverse=True)[:SHOWN_MAX]:
        due = f"is due for {_late_s(each) / 60:.0f} min"
        yield warn("backlog", f"the first of {each.jobs} {each.name} in queue {each.queue} {due}", fix)
    if len(late) > SHOWN_MAX:
        places = amount(len(late) - SHOWN_MAX, "name of a queue", "names of queues")
        yield warn("backlog", f"jobs of {places} more are due for over {LATE_S / 60:.0f} min", fix)


def _late_s(count: Count) -> float:
    """Since when the first has been due; below 0 where it will be."""
    return (count.now_us - count.first_us) / 1e6
