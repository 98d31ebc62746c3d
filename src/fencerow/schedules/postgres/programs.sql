-- Programs that declare schedules: of two releases of one, the newer counts, whichever started last.

-- name: declare_program
-- This release counts from now on. Guard: none with a higher version has counted, unless it is to be taken back.
INSERT INTO fencerow.schedule_programs AS known (owner, version, digest, declared_at, declared_by)
VALUES (:owner, CAST(:version AS bigint), :digest, (SELECT fencerow.now()), CAST(:actor AS text))
ON CONFLICT (owner) DO UPDATE
SET version = excluded.version, digest = excluded.digest, declared_at = excluded.declared_at,
    declared_by = excluded.declared_by, contradicted_at = NULL, contradicted_by = NULL
WHERE known.version <= excluded.version OR CAST(:take_back AS boolean)
RETURNING known.version;

-- name: read_programs
-- Which releases count: of one program, or of all; and which of them a worker has contradicted since.
SELECT known.owner, known.version, known.digest, fencerow.us(known.declared_at), known.declared_by,
       fencerow.us(known.contradicted_at), known.contradicted_by, fencerow.us((SELECT fencerow.now()))
FROM fencerow.schedule_programs AS known
WHERE CAST(:owner AS text) IS NULL OR known.owner = CAST(:owner AS text)
ORDER BY known.owner;

-- name: contradict_program
-- Note that a living worker declares otherwise. Guard: another release counts, and no newer one.
UPDATE fencerow.schedule_programs AS known
SET contradicted_at = (SELECT fencerow.now()), contradicted_by = CAST(:actor AS text)
WHERE known.owner = :owner AND known.digest <> :digest AND known.version <= CAST(:version AS bigint)
RETURNING known.owner;

-- name: note_unfollowed
-- Say on the heads why nobody looks after their entities. Guard: nobody has for a while, and it is news.
UPDATE fencerow.schedules AS each
SET trouble = CAST(:trouble AS text)
WHERE each.owner = :owner AND each.kind = 'head' AND each.origin = 'code'
  AND each.trouble IS DISTINCT FROM CAST(:trouble AS text)
  AND coalesce(each.refresh_at, each.changed_at)
      < (SELECT fencerow.now()) - fencerow.seconds(CAST(:after_s AS double precision));
