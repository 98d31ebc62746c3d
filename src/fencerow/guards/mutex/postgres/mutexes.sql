-- Mutexes by key. A row is made at the first take: its token goes up at each take and never back. Rows that nobody has
-- used for long are forgotten; the highest token among them stays behind as the floor, above which new rows begin.
--
-- A guard locks the row FOR KEY SHARE until its transaction ends. Only taking conflicts with that: the next holder
-- waits for the last one's guarded writes, while renewing and releasing pass.

-- name: take_mutex
-- Take a mutex whose row is there. Guard: it is free, or stale by the database's clock, or an older attempt of the
-- same job left it, or this very take made it its own before and lost the answer. A locked row is passed over: its
-- holder is just being decided, or a guarded transaction of the last one is open.
UPDATE fencerow.mutexes AS mutex
SET token = mutex.token + CASE WHEN mutex.holder = CAST(:holder AS uuid) THEN 0 ELSE 1 END,
    holder = CAST(:holder AS uuid),
    stale_s = CAST(:stale_s AS double precision),
    since = fencerow.now(),
    until = fencerow.now() + fencerow.seconds(CAST(:stale_s AS double precision)),
    job_id = CAST(:job_id AS uuid),
    attempt = CAST(:attempt AS bigint),
    job_name = CAST(:job_name AS text),
    host = :host,
    pid = CAST(:pid AS bigint),
    purpose = CAST(:purpose AS text)
WHERE mutex.key = ANY (ARRAY(
          SELECT open.key
          FROM fencerow.mutexes AS open
          WHERE open.key = :key
            AND (open.holder IS NULL
                 OR open.until <= (SELECT fencerow.now())
                 OR (open.job_id = CAST(:job_id AS uuid) AND open.attempt < CAST(:attempt AS bigint))
                 OR open.holder = CAST(:holder AS uuid))
          FOR UPDATE SKIP LOCKED))
RETURNING mutex.token;

-- name: make_mutex
-- Take a mutex whose key has no row. Guard: no row yet; another that makes it just now is waited for.
INSERT INTO fencerow.mutexes
    (key, token, holder, stale_s, since, until, job_id, attempt, job_name, host, pid, purpose)
SELECT :key, COALESCE((SELECT floor.token FROM fencerow.mutex_floor AS floor), 0) + 1, CAST(:holder AS uuid),
       CAST(:stale_s AS double precision), fencerow.now(), fencerow.now() + fencerow.seconds(CAST(:stale_s AS double precision)), CAST(:job_id AS uuid),
       CAST(:attempt AS bigint), CAST(:job_name AS text), :host, CAST(:pid AS bigint), CAST(:purpose AS text)
ON CONFLICT (key) DO NOTHING
RETURNING token;

-- name: lift_mutex
-- Lift the token of a row that was just made above a floor which its making did not see: a purge of this very key was
-- committed before the row could be made, and this later statement sees it. Guard: this take made it.
UPDATE fencerow.mutexes AS mutex
SET token = floor.token + 1
FROM fencerow.mutex_floor AS floor
WHERE mutex.key = :key
  AND mutex.holder = CAST(:holder AS uuid)
  AND mutex.token <= floor.token
RETURNING mutex.token;

-- name: renew_mutex
-- Keep a mutex for another while. Guard: this take holds it still. Late is not too late while nobody took it.
UPDATE fencerow.mutexes AS mutex
SET until = fencerow.now() + fencerow.seconds(mutex.stale_s)
WHERE mutex.key = :key
  AND mutex.holder = CAST(:holder AS uuid)
  AND mutex.token = CAST(:token AS bigint)
RETURNING fencerow.us(mutex.until);

-- name: release_mutex
-- Give a mutex back. Guard: this take holds it still. The row stays, and with it the token.
UPDATE fencerow.mutexes AS mutex
SET holder = NULL, until = fencerow.now()
WHERE mutex.key = :key
  AND mutex.holder = CAST(:holder AS uuid)
  AND mutex.token = CAST(:token AS bigint)
RETURNING mutex.token;

-- name: abandon_mutex
-- Give back what a take whose answer was lost may have brought. Guard: the id that was made for that take alone.
UPDATE fencerow.mutexes AS mutex
SET holder = NULL, until = fencerow.now()
WHERE mutex.key = :key
  AND mutex.holder = CAST(:holder AS uuid)
RETURNING mutex.token;

-- name: free_mutex
-- Take a mutex from its holder, by an operator who saw this token. Guard: it is held under that token still.
UPDATE fencerow.mutexes AS mutex
SET holder = NULL, until = fencerow.now(), freed_at = fencerow.now(), freed_by = CAST(:actor AS text),
    freed_reason = CAST(:reason AS text)
WHERE mutex.key = :key
  AND mutex.holder IS NOT NULL
  AND mutex.token = CAST(:token AS bigint)
RETURNING mutex.token;

-- name: guard_mutex
-- Let nobody take the mutex until this transaction ends. Guard: held, and under this token.
SELECT mutex.token
FROM fencerow.mutexes AS mutex
WHERE mutex.key = :key
  AND mutex.holder IS NOT NULL
  AND mutex.token = CAST(:token AS bigint)
FOR KEY SHARE;

-- name: read_mutex
-- One mutex as it stands, held or not.
SELECT mutex.key, mutex.token, CAST(mutex.holder AS text), mutex.stale_s, fencerow.us(mutex.since),
       fencerow.us(mutex.until), CAST(mutex.job_id AS text), mutex.attempt, mutex.job_name, mutex.host, mutex.pid,
       mutex.purpose, fencerow.us(mutex.freed_at), mutex.freed_by, mutex.freed_reason, fencerow.us(fencerow.now())
FROM fencerow.mutexes AS mutex
WHERE mutex.key = :key;

-- name: held_mutexes
-- Those that are held, the longest first; the stale among them, which anybody may take over, too.
SELECT mutex.key, mutex.token, CAST(mutex.holder AS text), mutex.stale_s, fencerow.us(mutex.since),
       fencerow.us(mutex.until), CAST(mutex.job_id AS text), mutex.attempt, mutex.job_name, mutex.host, mutex.pid,
       mutex.purpose, fencerow.us(mutex.freed_at), mutex.freed_by, mutex.freed_reason, fencerow.us(fencerow.now())
FROM fencerow.mutexes AS mutex
WHERE mutex.holder IS NOT NULL
ORDER BY mutex.since, mutex.key
LIMIT CAST(:limit AS bigint);

-- name: count_deferral
-- Count that a job puts itself back because of one busy mutex: once for each attempt, however often it is told.
INSERT INTO fencerow.mutex_deferrals AS known (job_id, key, attempt, deferrals, at)
SELECT CAST(:job_id AS uuid), :key, CAST(:attempt AS bigint), 1, fencerow.now()
ON CONFLICT (job_id, key) DO UPDATE
SET deferrals = known.deferrals + CASE WHEN known.attempt < EXCLUDED.attempt THEN 1 ELSE 0 END,
    attempt = EXCLUDED.attempt,
    at = EXCLUDED.at
WHERE known.attempt <= EXCLUDED.attempt
RETURNING known.deferrals;

-- name: forget_deferrals
-- The job has the mutex, or its attempt gives up: it counts anew. Guard: no newer attempt has counted.
DELETE FROM fencerow.mutex_deferrals AS known
WHERE known.job_id = CAST(:job_id AS uuid)
  AND known.key = :key
  AND known.attempt <= CAST(:attempt AS bigint);

-- name: purge_deferrals
-- Forget what jobs have left that never came back. What another purges just now is passed over.
DELETE FROM fencerow.mutex_deferrals AS known
WHERE known.ctid = ANY(ARRAY(
          SELECT old.ctid
          FROM fencerow.mutex_deferrals AS old
          WHERE old.at < (SELECT fencerow.now()) - fencerow.seconds(CAST(:age_s AS double precision))
          FOR UPDATE SKIP LOCKED))
RETURNING known.key;

-- name: mutex_keys_after
-- How far some keys reach, in the order of the primary key: what a purge looks at in one go.
SELECT count(*) AS keys, max(few.key) AS last
FROM (SELECT known.key FROM fencerow.mutexes AS known WHERE known.key > :after ORDER BY known.key LIMIT :limit) AS few;

-- name: purge_mutexes
-- Forget keys that nobody has held or renewed for long. Guard: the time; a row that is locked, by a take or by a guarded
-- transaction, is left out.
DELETE FROM fencerow.mutexes AS mutex
WHERE mutex.ctid = ANY(ARRAY(
       SELECT old.ctid
       FROM fencerow.mutexes AS old
       WHERE old.key > :after
         AND old.key <= :last
         AND old.until < (SELECT fencerow.now()) - fencerow.seconds(CAST(:age_s AS double precision))
       FOR UPDATE SKIP LOCKED))
  AND mutex.until < (SELECT fencerow.now()) - fencerow.seconds(CAST(:age_s AS double precision))
RETURNING mutex.token;

-- name: raise_mutex_floor
-- New rows begin above what was forgotten, whatever their keys: in the transaction that forgets.
INSERT INTO fencerow.mutex_floor AS floor (one, token)
SELECT 1, CAST(:token AS bigint)
ON CONFLICT (one) DO UPDATE
SET token = EXCLUDED.token
WHERE floor.token < EXCLUDED.token;
