-- Mutexes by key. A row is made at the first take: its token goes up at each take and never back. Rows that nobody has
-- used for long are forgotten; the highest token among them stays behind as the floor, above which new rows begin.

-- name: take_mutex
-- Take a mutex whose row is there. Guard: it is free, or stale by the database's clock, or an older attempt of the
-- same job left it, or this very take made it its own before and lost the answer.
UPDATE fencerow.mutexes
SET token = token + CASE WHEN holder = :holder THEN 0 ELSE 1 END,
    holder = :holder,
    stale_s = :stale_s,
    since = fencerow.now(),
    until = fencerow.now() + CAST(:stale_s * 1000000 AS INTEGER),
    job_id = :job_id,
    attempt = :attempt,
    job_name = :job_name,
    host = :host,
    pid = :pid,
    purpose = :purpose
WHERE key = :key
  AND (holder IS NULL
       OR until <= fencerow.now()
       OR (job_id = :job_id AND attempt < :attempt)
       OR holder = :holder)
RETURNING token;

-- name: make_mutex
-- Take a mutex whose key has no row. Guard: no row yet.
INSERT INTO fencerow.mutexes
    (key, token, holder, stale_s, since, until, job_id, attempt, job_name, host, pid, purpose)
SELECT :key, COALESCE((SELECT floor.token FROM fencerow.mutex_floor AS floor), 0) + 1, :holder, :stale_s,
       fencerow.now(), fencerow.now() + CAST(:stale_s * 1000000 AS INTEGER), :job_id,
       :attempt, :job_name, :host, :pid, :purpose
WHERE true
ON CONFLICT (key) DO NOTHING
RETURNING token;

-- name: lift_mutex
-- Lift the token of a row that was just made above a floor which its making did not see: a purge of this very key was
-- committed before the row could be made, and this later statement sees it. Guard: this take made it.
UPDATE fencerow.mutexes
SET token = floor.token + 1
FROM fencerow.mutex_floor AS floor
WHERE fencerow.mutexes.key = :key
  AND fencerow.mutexes.holder = :holder
  AND fencerow.mutexes.token <= floor.token
RETURNING fencerow.mutexes.token;

-- name: renew_mutex
-- Keep a mutex for another while. Guard: this take holds it still. Late is not too late while nobody took it.
UPDATE fencerow.mutexes
SET until = fencerow.now() + CAST(stale_s * 1000000 AS INTEGER)
WHERE key = :key
  AND holder = :holder
  AND token = :token
RETURNING until;

-- name: release_mutex
-- Give a mutex back. Guard: this take holds it still. The row stays, and with it the token.
UPDATE fencerow.mutexes
SET holder = NULL, until = fencerow.now()
WHERE key = :key
  AND holder = :holder
  AND token = :token
RETURNING token;

-- name: abandon_mutex
-- Give back what a take whose answer was lost may have brought. Guard: the id that was made for that take alone.
UPDATE fencerow.mutexes
SET holder = NULL, until = fencerow.now()
WHERE key = :key
  AND holder = :holder
RETURNING token;

-- name: free_mutex
-- Take a mutex from its holder, by an operator who saw this token. Guard: it is held under that token still.
UPDATE fencerow.mutexes
SET holder = NULL, until = fencerow.now(), freed_at = fencerow.now(), freed_by = :actor, freed_reason = :reason
WHERE key = :key
  AND holder IS NOT NULL
  AND token = :token
RETURNING token;

-- name: guard_mutex
-- Let nobody take the mutex until this transaction ends: a write that changes nothing takes the file's write lock.
-- Guard: held, and under this token.
UPDATE fencerow.mutexes
SET token = token
WHERE key = :key
  AND holder IS NOT NULL
  AND token = :token
RETURNING token;

-- name: read_mutex
-- One mutex as it stands, held or not.
SELECT mutex.key, mutex.token, mutex.holder, mutex.stale_s, mutex.since, mutex.until, mutex.job_id, mutex.attempt,
       mutex.job_name, mutex.host, mutex.pid, mutex.purpose, mutex.freed_at, mutex.freed_by, mutex.freed_reason,
       fencerow.now()
FROM fencerow.mutexes AS mutex
WHERE mutex.key = :key;

-- name: held_mutexes
-- Those that are held, the longest first; the stale among them, which anybody may take over, too.
SELECT mutex.key, mutex.token, mutex.holder, mutex.stale_s, mutex.since, mutex.until, mutex.job_id, mutex.attempt,
       mutex.job_name, mutex.host, mutex.pid, mutex.purpose, mutex.freed_at, mutex.freed_by, mutex.freed_reason,
       fencerow.now()
FROM fencerow.mutexes AS mutex
WHERE mutex.holder IS NOT NULL
ORDER BY mutex.since, mutex.key
LIMIT :limit;

-- name: count_deferral
-- Count that a job puts itself back because of one busy mutex: once for each attempt, however often it is told.
INSERT INTO fencerow.mutex_deferrals AS known (job_id, key, attempt, deferrals, at)
SELECT :job_id, :key, :attempt, 1, fencerow.now()
WHERE true
ON CONFLICT (job_id, key) DO UPDATE
SET deferrals = known.deferrals + CASE WHEN known.attempt < excluded.attempt THEN 1 ELSE 0 END,
    attempt = excluded.attempt,
    at = excluded.at
WHERE known.attempt <= excluded.attempt
RETURNING deferrals;

-- name: forget_deferrals
-- The job has the mutex, or its attempt gives up: it counts anew. Guard: no newer attempt has counted.
DELETE FROM fencerow.mutex_deferrals
WHERE job_id = :job_id
  AND key = :key
  AND attempt <= :attempt;

-- name: purge_deferrals
-- Forget what jobs have left that never came back.
DELETE FROM fencerow.mutex_deferrals
WHERE at < fencerow.now() - CAST(:age_s * 1000000 AS INTEGER)
RETURNING key;

-- name: mutex_keys_after
-- How far some keys reach, in the order of the primary key: what a purge looks at in one go.
SELECT count(*) AS keys, max(few.key) AS last
FROM (SELECT known.key FROM fencerow.mutexes AS known WHERE known.key > :after ORDER BY known.key LIMIT :limit) AS few;

-- name: purge_mutexes
-- Forget keys that nobody has held or renewed for long. Guard: the time.
DELETE FROM fencerow.mutexes
WHERE key > :after
  AND key <= :last
  AND until < fencerow.now() - CAST(:age_s * 1000000 AS INTEGER)
RETURNING token;

-- name: raise_mutex_floor
-- New rows begin above what was forgotten, whatever their keys: in the transaction that forgets.
INSERT INTO fencerow.mutex_floor AS floor (one, token)
SELECT 1, :token
WHERE true
ON CONFLICT (one) DO UPDATE
SET token = excluded.token
WHERE floor.token < excluded.token;
