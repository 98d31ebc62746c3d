"""What the explorer makes in a schema: a clock that tests move, and gates that hold a statement.

In the held mode a statement that changes data stops once its snapshot is taken and before it looks at a
row: BEFORE … FOR EACH STATEMENT triggers wait there for an advisory lock, the actor's gate. Some faults
show only so, because whole statements in any order never have a snapshot older than a lock.
"""

from __future__ import annotations

TABLES = (
    "jobs", "finished_jobs", "keys", "workers", "queues", "job_events", "job_logs", "job_progress",
    "spent_ids", "repeated_ids", "mutexes", "mutex_deferrals", "mutex_floor", "schedules", "schedule_ticks",
    "schedule_programs",
    "once_keys", "dedupe_windows", "sources", "row_leases",
    "events", "event_marks", "event_groups", "event_cursors", "event_drainers", "event_asides",
    "backfills", "limits", "limit_states", "watched_limits", "limit_failures", "gates", "gate_arrivals",
    "passed_queues", "shares",
    "unique_jobs", "handovers", "job_steps", "job_waits", "job_signals", "job_approvals", "job_output", "sagas",
    "saga_steps", "api_tokens",
    "flows", "flow_jobs", "flow_edges", "flow_callbacks", "flow_waits",
    "webhook_endpoints", "webhook_deliveries", "webhook_attempts", "worked_attempts", "gateway_maintenance", "audit",
    "moves", "move_parts",
    "relays", "relay_readers", "relay_parts", "relay_unread", "hook_tallies",
)  # fmt: skip
OF_SERVERS = ("move_parts",)  # what comes into a server; a file has no such table

# Everything here is for tests alone and is made by the owner of the schema, who need not be a superuser.
# The notice is sent before the wait, so that nobody has to ask who is held.
PREPARE = """
CREATE TABLE IF NOT EXISTS fencerow.race_clock (offset_s double precision NOT NULL);
INSERT INTO fencerow.race_clock SELECT 0 WHERE NOT EXISTS (SELECT FROM fencerow.race_clock);
CREATE OR REPLACE FUNCTION fencerow.now() RETURNS timestamptz LANGUAGE sql VOLATILE AS
    'SELECT clock_timestamp() + offset_s * INTERVAL ''1 second'' FROM fencerow.race_clock';
CREATE OR REPLACE FUNCTION fencerow.hold() RETURNS boolean LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    gate text := coalesce(current_setting('fencerow.gate', true), '');
BEGIN
    IF gate <> '' THEN
        IF NOT pg_try_advisory_lock(CAST(gate AS bigint)) THEN
            -- Whoever locks a row has a number; who has none holds no lock that another could meet.
            RAISE NOTICE '%', CASE WHEN pg_current_xact_id_if_assigned() IS NULL THEN 'held' ELSE 'held, locks' END;
            PERFORM pg_advisory_lock(CAST(gate AS bigint));
        END IF;
        PERFORM pg_advisory_unlock(CAST(gate AS bigint));
    END IF;
    RETURN true;
END $$;
CREATE OR REPLACE FUNCTION fencerow.hold_statement() RETURNS trigger LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    -- A statement is held once: one that gives a turn and inserts behind that, where it locks the gate or comes to it.
    IF TG_TABLE_NAME <> 'jobs' OR current_query() NOT LIKE '%lock\\_free\\_turns%' THEN
        PERFORM fencerow.hold();
    END IF;
    RETURN NULL;
END $$;
"""
TRIGGER = """
CREATE OR REPLACE TRIGGER race_hold BEFORE INSERT OR UPDATE OR DELETE ON fencerow.{table}
    FOR EACH STATEMENT EXECUTE FUNCTION fencerow.hold_statement();
"""
# A locking SELECT fires no trigger: it waits in a condition, which is judged before the row is locked.
HELD_SELECTS = {
    **dict.fromkeys(
        (
            "lock_live",
            "lock_finished",
            "lock_free_finished",
            "lock_removable",
            "lock_waiters",
            "lock_free_waiters",
            "lock_flow_jobs_to_revive",
        ),
        ("WHERE ", "WHERE fencerow.hold() AND "),
    ),
    "lock_queue_limits": ("WHERE ", "WHERE fencerow.hold() AND "),
    "lock_flows": ("WHERE flow.id ", "WHERE fencerow.hold() AND flow.id "),
    **dict.fromkeys(
        ("find_turns", "find_alike", "give_alike"),
        ("AND waiting.queue = lane.queue", "AND fencerow.hold() AND waiting.queue = lane.queue"),
    ),
    "read_named_limits": ("ORDER BY ", "WHERE fencerow.hold() ORDER BY "),
    "guard_mutex": ("WHERE ", "WHERE fencerow.hold() AND "),
}
# How long a statement waits for a lock is real time, and real time decides nothing in an order: here it waits until
# the lock is free. Else an order would come out in another way on a machine that is slow.
PATIENT = {
    "wait_briefly": ("'500ms'", "'0'"),
    "wait_for_locks": ("CAST(:wait_ms AS text)", "CAST(0 * CAST(:wait_ms AS integer) AS text)"),
}
LATER = "UPDATE fencerow.race_clock SET offset_s = offset_s + CAST(:s AS double precision)"
# A function, because its plans are kept.
CLEAR = """
CREATE OR REPLACE FUNCTION fencerow.race_clear() RETURNS void LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    {emptying}
    PERFORM setval(CAST($q$fencerow.repeats_until$q$ AS regclass), 1);
    UPDATE fencerow.race_clock SET offset_s = 0 WHERE offset_s <> 0;
END $$;
"""
EMPTY = "IF EXISTS (SELECT FROM fencerow.{table}) THEN DELETE FROM fencerow.{table}; END IF;"
