-- What `doctor` asks a PostgreSQL server. Nothing here reads a payload or changes anything.

-- name: server_facts
-- Settings, role and clock. The clock is the server's own, not ours: tests replace ours.
SELECT CAST(json_build_object(
           'version', CAST(current_setting('server_version_num') AS integer),
           'fsync', current_setting('fsync'),
           'synchronous_commit', current_setting('synchronous_commit'),
           'full_page_writes', current_setting('full_page_writes'),
           'standby', pg_is_in_recovery(),
           'read_only', current_setting('transaction_read_only'),
           'now_us', CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS bigint),
           'role', current_user,
           'superuser', (SELECT rolsuper FROM pg_roles WHERE rolname = current_user)
       ) AS text);

-- name: connection_counts
-- Connections, and what limits them. Counted by database, which every role may read; sessions of other roles are
-- hidden from most, but not what they call themselves. `reserved_connections` exists since PostgreSQL 16.
SELECT CAST(json_build_object(
           'all', (SELECT COALESCE(sum(numbackends), 0) FROM pg_stat_database),
           'ours', (SELECT count(*) FROM pg_stat_activity WHERE application_name = 'fencerow'),
           'server_max', CAST(current_setting('max_connections') AS integer),
           'reserved', CAST(current_setting('superuser_reserved_connections') AS integer)
               + CAST(COALESCE(NULLIF(current_setting('reserved_connections', true), ''), '0') AS integer),
           'role_max', (SELECT rolconnlimit FROM pg_roles WHERE rolname = current_user),
           'database_max', (SELECT datconnlimit FROM pg_database WHERE datname = current_database())
       ) AS text);

-- name: missing_privileges
-- How many tables the schema has, and those on which this role lacks something that a worker needs; so with sequences that
-- stand alone. What a column counts up needs no privilege. `filtered`: those whose rows are chosen by policies for this role.
SELECT CAST(json_build_object(
           'role', current_user,
           'tables', count(*) FILTER (WHERE lacking.kind <> 'S'),
           'missing', COALESCE(json_agg(json_build_object('table', lacking.name, 'missing', lacking.missing)
                                        ORDER BY lacking.name) FILTER (WHERE lacking.missing IS NOT NULL), '[]'),
           'filtered', COALESCE(json_agg(lacking.name ORDER BY lacking.name) FILTER (WHERE lacking.filtered), '[]')
       ) AS text)
FROM (SELECT part.relname AS name, part.relkind AS kind, part.relrowsecurity AND row_security_active(part.oid) AS filtered,
             (SELECT string_agg(wanted.privilege, ', ')
              FROM unnest(CASE WHEN part.relname = 'schema_migrations' THEN ARRAY['SELECT']
                               WHEN part.relkind = 'S' THEN ARRAY['SELECT', 'UPDATE']
                               ELSE ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE'] END) AS wanted (privilege)
              WHERE NOT has_table_privilege(part.oid, wanted.privilege)) AS missing
      FROM pg_class AS part
      JOIN pg_namespace AS space ON space.oid = part.relnamespace
      -- Partitions are reached through their parent, whose privileges count. What is under way is the migrator's alone.
      WHERE space.nspname = :schema AND part.relkind IN ('r', 'p', 'S') AND NOT part.relispartition
        AND part.relname <> 'schema_work'
        AND NOT EXISTS (SELECT 1 FROM pg_depend AS owned
                        WHERE part.relkind = 'S' AND owned.objid = part.oid AND owned.deptype IN ('a', 'i'))) AS lacking;

-- name: hidden_sessions
-- Sessions of others whose transaction this role may not see: their state comes back empty.
SELECT count(*)
FROM pg_stat_activity
WHERE backend_type = 'client backend' AND state IS NULL AND pid <> pg_backend_pid();

-- name: orphans
-- Running jobs whose holder's lease is over, and how long the oldest has been so. A holder without a row counts
-- from the claim.
SELECT count(*), COALESCE(fencerow.us(fencerow.now()) - min(fencerow.us(COALESCE(holder.lease_until, job.claimed_at))), 0)
FROM fencerow.jobs AS job
LEFT JOIN fencerow.workers AS holder ON holder.id = job.holder
WHERE job.state = 'running'
  AND (holder.id IS NULL OR holder.state <> 'alive' OR holder.lease_until < (SELECT fencerow.now()));

-- name: labels_waited_for
-- The labels for which jobs wait, by queue, with how many of them wait for nobody else: they never fall back.
SELECT job.queue, job.affinity, count(*), count(*) FILTER (WHERE job.affinity_wait_s IS NULL)
FROM fencerow.jobs AS job
WHERE job.state = 'queued'
  AND job.affinity IS NOT NULL
  AND job.fell_back_for <= job.attempt
GROUP BY job.queue, job.affinity
ORDER BY 1, 2;
