"""Faults of a PostgreSQL server and of the network before it. Each is seen to strike, or does not count."""

from __future__ import annotations

import os
import signal
import time
import uuid
from collections.abc import Mapping
from contextlib import ExitStack, suppress

import psycopg
from psycopg import sql

from fencerow_proof.network.faults import Fault as Aimed
from fencerow_proof.network.faults import Phase
from tests.proof.storm import faults
from tests.proof.storm.ground import PostgresGround
from tests.proof.storm.plan import HOUR_S, LEASE_S, OUTAGE_S
from tests.proof.storm.scene import AN_HOUR, Fault, Kind, Scene, until
from tests.whole.outages.cuts import OF_CALLERS, OF_WORKERS

SECONDS = {Phase.DELAY: 1.0, Phase.TRICKLE: 0.004}  # how late, and how long between two bytes
CUT_S = 2.0  # how long a cut waits for the statement that it is meant for
AWAY_S = 15.0
TURN_S = 10.0  # how long a fault that strikes everybody waits for the one before it

WORKERS = {**OF_WORKERS, "effect": "INSERT INTO fencerow.effect"}

# The role of a program that only submits, as far as these rows need it: `fencerow sql` has it whole.
FORGER = """
DO $$ BEGIN
    CREATE ROLE storm_forger;
    GRANT USAGE ON SCHEMA fencerow TO storm_forger;
    GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA fencerow TO storm_forger;
    GRANT INSERT ON fencerow.jobs, fencerow.move TO storm_forger;
    GRANT INSERT (gate) ON fencerow.gate_arrivals TO storm_forger;
EXCEPTION WHEN duplicate_object THEN NULL;
END $$
"""
FORGE = """
INSERT INTO fencerow.jobs (id, queue, name, run_at, attempts_max, crashes_max, snoozes_max, submitted_at, args,
                           args_bytes, ephemeral, priority, state, gate, limits)
VALUES (%(id)s, 'default', 'forged', '2020-01-01', 9, 9, 9, '2020-01-01', '{"n": 1}',
        8, false, 0, 'waiting', 'limit:metered', CAST(%(limits)s AS text[]))
"""
FORGED = ("{NULL,metered}", "{{metered,metered},{x,y}}", "{}", "{metered,/}", "{metered,queue:narrow}")
REFUSED = 3  # of them, by the tables

On = Scene[PostgresGround]


def meet(phase: Phase, *, is_worker: bool) -> Fault[PostgresGround]:
    """The fault that strikes one statement of a worker or a client, or its answer, on the way."""

    def strike(scene: On) -> bool:
        proxy = scene.ground.proxies[is_worker]
        text = scene.chance.choice(list((WORKERS if is_worker else OF_CALLERS).values()))
        seconds = SECONDS.get(phase, 0.0) * (0.5 + scene.chance.random())
        fault = Aimed(phase, text, seconds=seconds, reset=scene.chance.random() < 0.5)
        with scene.ground.cutting[is_worker]:
            proxy.inject(fault)
            # It strikes within moments, or nobody sent such a statement.
            if until(lambda: any(each.fault is fault for each in proxy.strikes), CUT_S):
                return True
            proxy.disarm()
            return any(each.fault is fault for each in proxy.strikes)

    return strike


def silence_network(scene: On) -> bool:
    """Nothing passes between workers and server for a while, then all connections break."""
    proxy = scene.ground.proxies[True]
    with scene.ground.cutting[True], scene.ground.server.connect("app") as connection:
        found = connection.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = 'app' AND client_addr IS NOT NULL"
        ).fetchone()
        proxy.black_hole()
        try:
            time.sleep(scene.chance.uniform(0.3, 1.5) * LEASE_S)
        finally:
            proxy.heal()
    return found is not None and found[0] > 0


def end_backend(scene: On) -> bool:
    """One connection is ended by the server: not of the spared worker, which comes through the socket, as we do."""
    with scene.ground.server.connect("app") as connection:
        found = connection.execute(
            "SELECT pg_terminate_backend(pid, 3000) FROM (SELECT pid FROM pg_stat_activity"
            " WHERE datname = 'app' AND client_addr IS NOT NULL ORDER BY random() LIMIT 1) AS one"
        ).fetchone()
    return found == (True,)


def kill_backend(scene: On) -> bool:
    """SIGKILL of one server process: the server ends all the others and recovers from its log."""
    if not scene.ground.whole.acquire(timeout=TURN_S):
        return False
    try:
        with scene.trouble("server crash"), scene.ground.server.connect("app") as witness:
            found = witness.execute(
                "SELECT pid FROM pg_stat_activity"
                " WHERE datname = 'app' AND client_addr IS NOT NULL ORDER BY random() LIMIT 1"
            ).fetchone()
            if found is None:
                return False
            os.kill(int(found[0]), signal.SIGKILL)
            return until(lambda: _is_broken(witness), 5.0) and _is_back(scene)
    finally:
        scene.ground.whole.release()


def crash_server(scene: On) -> bool:
    """Immediate stop and start: recovery from the write-ahead log."""
    if not scene.ground.whole.acquire(timeout=TURN_S):
        return False
    try:
        with scene.trouble("server crash"):
            scene.ground.server.stop("immediate")
            time.sleep(scene.chance.random() * 0.5)
            scene.ground.server.start()
            return _is_back(scene)
    finally:
        scene.ground.whole.release()


def stay_away(scene: On) -> bool:
    """The server is away for longer than the time limit of jobs: their outcomes wait, and must not be judged before."""
    if not scene.ground.whole.acquire(timeout=TURN_S):
        return False
    try:
        with scene.trouble("server away"):
            scene.ground.server.stop("immediate")
            time.sleep(OUTAGE_S)
            scene.ground.server.start()
            return _is_back(scene)
    finally:
        scene.ground.whole.release()


def fill_disk(scene: On) -> bool:
    """No space for a while: first tables cannot grow, then the log cannot, and the server may end by itself."""
    disk = scene.ground.disk
    if disk is None or not scene.ground.whole.acquire(timeout=TURN_S):
        return False
    try:
        with scene.trouble("disk full"):
            disk.fill()
            try:
                seen = until(lambda: _is_full(scene), 3.0)
                time.sleep(0.5)
            finally:
                disk.make_room()
            return _is_back(scene) and seen
    finally:
        scene.ground.whole.release()


def jump_clock(scene: On) -> bool:
    """The database's clock is wrong by up to three leases for a while: two jumps."""
    if not scene.ground.whole.acquire(timeout=TURN_S):
        return False
    try:
        with scene.trouble("clock jumped"):
            return _jumped(
                scene, round(scene.chance.uniform(-3, 3) * LEASE_S, 3), 0.2 + scene.chance.random()
            )
    finally:
        scene.ground.whole.release()


def jump_an_hour(scene: On) -> bool:
    """The database's clock is an hour wrong for longer than a lease: every lease and deadline is in the wrong hour."""
    if not scene.ground.whole.acquire(timeout=TURN_S):
        return False
    try:
        with scene.trouble(AN_HOUR):
            return _jumped(
                scene, scene.chance.choice([-HOUR_S, HOUR_S]), LEASE_S * scene.chance.uniform(0.5, 2.0)
            )
    finally:
        scene.ground.whole.release()


def take_connections(scene: On) -> bool:
    """Strangers take every connection that the server has left."""
    if not scene.ground.whole.acquire(timeout=TURN_S):
        return False
    try:
        with scene.trouble("no connection left"), ExitStack() as stack:
            said = _taken_to_the_last(scene, stack)
            time.sleep(0.8)
            return "connection slots" in said or "too many clients" in said
    finally:
        scene.ground.whole.release()


def lock_rows(scene: On) -> bool:
    """A stranger holds the rows of some jobs, as a report or an editor left open does: first of those with a label,
    whose wait for it ends meanwhile."""
    with scene.ground.server.connect("app") as connection, connection.transaction():
        held = connection.execute(
            "SELECT id FROM fencerow.jobs WHERE state IN ('queued', 'running', 'waiting')"
            " ORDER BY affinity IS NULL, random() LIMIT 50 FOR UPDATE SKIP LOCKED"
        ).fetchall()
        time.sleep(0.7)
        return len(held) > 0


def forge_rows(scene: On) -> bool:
    """Whoever may only submit writes rows that no program of ours writes, and arrivals at gates that nobody has.

    What the tables take is taken away again, with what the ledger has of it: nobody submitted it.
    """
    with scene.ground.server.connect("app") as connection:
        connection.execute(FORGER)
        ids = [str(uuid.uuid4()) for _ in FORGED]
        refused = sum(_is_refused(connection, *each) for each in zip(ids, FORGED, strict=True))
        time.sleep(0.7 + scene.chance.random())
        # A worker may have ended them, and noted that: their time limit is over where the clock jumps.
        for table, column in (
            ("jobs", "id"),
            ("finished_jobs", "id"),
            ("job_events", "job_id"),
            ("move", "job"),
        ):
            taken = sql.SQL("DELETE FROM {} WHERE {} = ANY(CAST(%s AS uuid[]))")
            connection.execute(taken.format(sql.Identifier("fencerow", table), sql.Identifier(column)), [ids])
    return refused == REFUSED


def lock_table(scene: On) -> bool:
    """A stranger locks the table of jobs against every write, as maintenance does; seen by those who wait for it."""
    if not scene.ground.whole.acquire(timeout=TURN_S):
        return False
    try:
        with (
            scene.trouble("table locked"),
            scene.ground.server.connect("app") as connection,
            connection.transaction(),
        ):
            connection.execute("SET LOCAL lock_timeout = '3s'")
            connection.execute("LOCK TABLE fencerow.jobs IN SHARE ROW EXCLUSIVE MODE")
            time.sleep(0.5)
            waiting = connection.execute(
                "SELECT count(*) FROM pg_stat_activity WHERE datname = 'app' AND wait_event_type = 'Lock'"
            ).fetchone()
            return waiting is not None and waiting[0] > 0
    finally:
        scene.ground.whole.release()


KINDS: Mapping[str, Kind[PostgresGround]] = {
    "worker killed": Kind(280, faults.kill_worker),
    "worker stopped beyond its lease": Kind(80, faults.stop_worker),
    "worker stopped inside a guarded transaction": Kind(20, faults.stop_inside),
    "event loop of a worker blocked": Kind(15, faults.block_loop),
    "no descriptors left to a worker": Kind(15, faults.take_descriptors),
    "client killed": Kind(60, faults.kill_client),
    "worker cut before its message": Kind(120, meet(Phase.BEFORE, is_worker=True)),
    "worker cut before the answer": Kind(130, meet(Phase.UNANSWERED, is_worker=True)),
    "worker cut within the answer": Kind(40, meet(Phase.DURING, is_worker=True)),
    "worker cut after the answer": Kind(30, meet(Phase.AFTER, is_worker=True)),
    "answer to a worker late": Kind(25, meet(Phase.DELAY, is_worker=True)),
    "answer to a worker byte by byte": Kind(15, meet(Phase.TRICKLE, is_worker=True)),
    "network of the workers silent": Kind(8, silence_network),
    "client cut before its message": Kind(80, meet(Phase.BEFORE, is_worker=False)),
    "client cut before the answer": Kind(100, meet(Phase.UNANSWERED, is_worker=False)),
    "client cut within the answer": Kind(30, meet(Phase.DURING, is_worker=False)),
    "client cut after the answer": Kind(20, meet(Phase.AFTER, is_worker=False)),
    "answer to a client late": Kind(15, meet(Phase.DELAY, is_worker=False)),
    "connection ended by the server": Kind(150, end_backend),
    "rows locked by a stranger": Kind(40, lock_rows),
    "rows forged by a submitter": Kind(30, forge_rows),
    # These strike everybody at once, one after the other. More of them would leave no time for anything else.
    "server crashed by the death of a backend": Kind(10, kill_backend, strikes_all=True),
    "server crashed by an immediate stop": Kind(8, crash_server, strikes_all=True),
    "disk full": Kind(4, fill_disk, strikes_all=True),
    "clock jumped": Kind(10, jump_clock, strikes_all=True),
    "clock jumped an hour": Kind(5, jump_an_hour, strikes_all=True),
    "server away for longer than a deadline": Kind(3, stay_away, strikes_all=True),
    "connections exhausted": Kind(6, take_connections, strikes_all=True),
    "table locked by a stranger": Kind(8, lock_table, strikes_all=True),
}


def _is_refused(connection: psycopg.Connection[tuple[object, ...]], job_id: str, limits: str) -> bool:
    """Write one as the role that only submits, with arrivals; whether the tables refuse it."""
    try:
        with connection.transaction():
            connection.execute("SET LOCAL ROLE storm_forger")
            connection.execute(FORGE, {"id": job_id, "limits": limits})
            connection.execute(
                "INSERT INTO fencerow.gate_arrivals (gate) VALUES ('limit:metered'), ('key:'), ('nothing')"
            )
    except psycopg.errors.CheckViolation:
        return True
    return False


def _jumped(scene: On, wanted_s: float, hold_s: float) -> bool:
    """Set the server's clock off for so long; whether it was seen to be off by that."""
    scene.ground.clock.advance(wanted_s)
    try:
        time.sleep(hold_s)
        with scene.ground.server.connect("app") as connection:
            found = connection.execute(
                "SELECT extract(epoch FROM fencerow.now() - clock_timestamp())"
            ).fetchone()
    finally:
        scene.ground.clock.close()
    return found is not None and abs(float(found[0]) - wanted_s) < 0.2


def _taken_to_the_last(scene: On, stack: ExitStack) -> str:
    """Connect until the server refuses; returns its words."""
    url = scene.ground.server.conninfo("app", "app")
    while True:
        try:
            stack.enter_context(psycopg.connect(url, autocommit=True, connect_timeout=3))
        except psycopg.OperationalError as error:
            return str(error)


def _is_broken(witness: psycopg.Connection[tuple[object, ...]]) -> bool:
    with suppress(psycopg.Error):
        witness.execute("SELECT 1")
    return witness.broken


def _is_full(scene: On) -> bool:
    """Whether the server says so itself: its tables, or its log, cannot grow."""
    try:
        with scene.ground.server.connect("app") as witness:
            witness.execute("CREATE TABLE IF NOT EXISTS public.filler (bytes bytea)")
            witness.execute("INSERT INTO public.filler VALUES (%s)", [os.urandom(1 << 20)])
    except psycopg.errors.DiskFull:
        return True
    except psycopg.OperationalError as error:
        return "No space left" in f"{error}{scene.ground.server.log_tail(50)}"
    return False


def _is_back(scene: On) -> bool:
    """Wait until the server takes connections; start it where it has ended."""

    def answers() -> bool:
        if scene.ground.server.pid is None:
            scene.ground.server.start()
        try:
            scene.ground.server.connect("app").close()
        except psycopg.OperationalError:
            return False
        return True

    return until(answers, AWAY_S)
