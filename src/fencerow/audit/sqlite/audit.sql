-- The audit log: written beside what people change, read, and removed when it is old.

-- name: note_entries
-- Tell who changed what. Part of the transaction that did, so both are there or neither.
INSERT INTO fencerow.audit (at, person, via, address, request_id, kind, verb, target, others, detail)
SELECT fencerow.now(), given.value ->> 'person', given.value ->> 'via', given.value ->> 'address', given.value ->> 'request_id',
       given.value ->> 'kind', given.value ->> 'verb', given.value ->> 'target',
       CASE WHEN given.value ->> 'others' IS NOT NULL THEN given.value -> 'others' END, given.value -> 'detail'
FROM json_each(:entries) AS given
ORDER BY given.key;

-- name: read_entries
-- A page of entries that match, the newest first; in the order of `Entry`. NULL for a filter lets all pass.
SELECT entry.id, entry.at, entry.person, entry.via, entry.address, entry.request_id, entry.kind, entry.verb,
       entry.target, entry.others, entry.detail
FROM fencerow.audit AS entry
WHERE (:before IS NULL OR entry.id < :before)
  AND (:target IS NULL OR entry.target = :target)
  AND (:kind IS NULL OR entry.kind = :kind)
  AND (:person IS NULL OR entry.person = :person)
  AND (:since_us IS NULL OR entry.at >= :since_us)
ORDER BY entry.id DESC
LIMIT :limit;

-- name: purge_entries
-- Remove what is older than :age_s. Guard: that.
DELETE FROM fencerow.audit
WHERE id IN (
    SELECT past.id
    FROM fencerow.audit AS past
    WHERE past.at < fencerow.now() - CAST(:age_s * 1000000 AS INTEGER)
    ORDER BY past.at
    LIMIT :limit)
RETURNING id;
