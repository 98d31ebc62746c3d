-- Programs that declare schedules: of two releases of one, the newer counts, whichever started last.

-- name: declare_program
-- This release counts from now on. Guard: none with a higher version has counted, unless it is to be taken back.
INSERT INTO fencerow.schedule_programs AS known (owner, version, digest, declared_at, declared_by)
VALUES (:owner, :version, :digest, fencerow.now(), :actor)
ON CONFLICT (owner) DO UPDATE
SET version = excluded.version, digest = excluded.digest, declared_at = excluded.declared_at,
    declared_by = excluded.declared_by, contradicted_at = NULL, contradicted_by = NULL
WHERE known.version <= excluded.version OR :take_back
RETURNING version;

-- name: read_programs
-- Which releases count: of one program, or of all; and which of them a worker has contradicted since.
SELECT known.owner, known.version, known.digest, known.declared_at, known.declared_by, known.contradicted_at,
       known.contradicted_by, fencerow.now()
FROM fencerow.schedule_programs AS known
WHERE :owner IS NULL OR known.owner = :owner
ORDER BY known.owner;

-- name: contradict_program
-- Note that a living worker declares otherwise. Guard: another release counts, and no newer one.
UPDATE fencerow.schedule_programs
SET contradicted_at = fencerow.now(), contradicted_by = :actor
WHERE owner = :owner AND digest <> :digest AND version <= :version
RETURNING owner;

-- name: note_unfollowed
-- Say on the heads why nobody looks after their entities. Guard: nobody has for a while, and it is news.
UPDATE fencerow.schedules
SET trouble = :trouble
WHERE owner = :owner AND kind = 'head' AND origin = 'code' AND trouble IS NOT :trouble
  AND coalesce(refresh_at, changed_at) < fencerow.now() - CAST(:after_s * 1000000 AS INTEGER);
