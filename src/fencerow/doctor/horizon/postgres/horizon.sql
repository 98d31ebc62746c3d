-- Who holds back the horizon, and what that costs. Nothing here reads a payload.

-- name: horizon_holders
-- Sessions of this database with a snapshot or a transaction of their own, prepared transactions in it, standbys whose
-- feedback holds rows, and replication slots; the oldest first. Of a slot nobody knows since when, so its age is told in
-- transactions. What a role may not see of others comes back empty. `may_end`: this role may end the session. It works
-- before our tables are there.
SELECT CAST(COALESCE(json_agg(found ORDER BY found.xids DESC, found.since_us), '[]') AS text)
FROM (SELECT CASE session.backend_type WHEN 'walsender' THEN 'standby' ELSE 'session' END AS kind,
             session.usename AS who, session.pid AS pid, NULLIF(session.application_name, '') AS application,
             CASE WHEN session.client_addr IS NOT NULL THEN host(session.client_addr)
                  WHEN session.backend_type = 'client backend' THEN 'this host' END AS client,
             session.state AS state,
             CAST(extract(epoch FROM COALESCE(session.xact_start, session.backend_start)) * 1000000 AS bigint) AS since_us,
             CAST(extract(epoch FROM session.query_start) * 1000000 AS bigint) AS query_us,
             GREATEST(age(session.backend_xmin), age(session.backend_xid)) AS xids,
             session.backend_type = 'client backend'
                 AND pg_has_role(session.usesysid, 'MEMBER') AS may_end
      FROM pg_stat_activity AS session
      WHERE (session.backend_xmin IS NOT NULL OR session.backend_xid IS NOT NULL)
        AND (session.datname = current_database() AND session.backend_type = 'client backend'
             OR session.backend_type = 'walsender')
        AND session.pid <> pg_backend_pid()
      UNION ALL
      SELECT 'prepared transaction', gone.owner, NULL, gone.gid, NULL, NULL, CAST(extract(epoch FROM gone.prepared) * 1000000 AS bigint), NULL,
             age(gone.transaction), false
      FROM pg_prepared_xacts AS gone
      WHERE gone.database = current_database()
      UNION ALL
      SELECT 'replication slot', slot.slot_name, slot.active_pid, slot.plugin, NULL,
             CASE WHEN slot.active THEN 'active' ELSE 'not active' END, NULL, NULL, age(slot.xmin), false
      FROM pg_replication_slots AS slot
      WHERE slot.xmin IS NOT NULL) AS found;

-- name: horizon_cost
-- Dead rows of the live jobs that no vacuum has removed, as the statistics have it, and the rows that live.
SELECT COALESCE(tables.n_dead_tup, 0), COALESCE(tables.n_live_tup, 0),
       fencerow.us(GREATEST(tables.last_vacuum, tables.last_autovacuum)), fencerow.us(clock_timestamp())
FROM pg_stat_user_tables AS tables
WHERE tables.relid = (SELECT of_row.typrelid FROM pg_type AS of_row WHERE of_row.oid = pg_typeof(CAST(NULL AS fencerow.jobs)));

-- name: horizon_blocks
-- How many blocks the look for the first job of all lanes reads: some four, and more with each dead row before it. It is
-- played, and changes nothing.
EXPLAIN (ANALYZE, BUFFERS, TIMING off, FORMAT json)
SELECT job.id
FROM fencerow.jobs AS job
WHERE job.state = 'queued'
ORDER BY job.queue, job.priority DESC, fencerow.lane(job), job.run_at, job.id
LIMIT 1;

-- name: end_session
-- End a session that holds the horizon. Guard: it is the same transaction that was seen, in the same session, of a client
-- of this database and none of ours; and this role may end it. Only what has passed the guard is ended: the planner may
-- ask conditions of one level in any order. Returns its name, as it was seen.
WITH meant AS MATERIALIZED (
    SELECT session.pid
    FROM pg_stat_activity AS session
    WHERE session.pid = CAST(:pid AS integer)
      AND CAST(extract(epoch FROM session.xact_start) * 1000000 AS bigint) = CAST(:since_us AS bigint)
      AND session.datname = current_database()
      AND session.backend_type = 'client backend'
      AND session.application_name IS DISTINCT FROM 'fencerow'
      AND session.pid <> pg_backend_pid()
      AND pg_has_role(session.usesysid, 'MEMBER')
)
SELECT CAST(:name AS text)
FROM meant
WHERE pg_terminate_backend(meant.pid);
