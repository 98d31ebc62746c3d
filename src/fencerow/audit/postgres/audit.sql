-- The audit log: written beside what people change, read, and removed when it is old.

-- name: note_entries
-- Tell who changed what. Part of the transaction that did, so both are there or neither.
INSERT INTO fencerow.audit (at, person, via, address, request_id, kind, verb, target, others, detail)
SELECT (SELECT fencerow.now()), given.person, given.via, given.address, given.request_id, given.kind, given.verb, given.target,
       given.others, given.detail
FROM json_to_recordset(CAST(:entries AS json)) AS given (
    person text, via text, address text, request_id text, kind text, verb text, target text, others json, detail json
);

-- name: read_entries
-- A page of entries that match, the newest first; in the order of `Entry`. NULL for a filter lets all pass.
SELECT entry.id, fencerow.us(entry.at), entry.person, entry.via, entry.address, entry.request_id, entry.kind, entry.verb,
       entry.target, CAST(entry.others AS text), CAST(entry.detail AS text)
FROM fencerow.audit AS entry
WHERE (CAST(:before AS bigint) IS NULL OR entry.id < CAST(:before AS bigint))
  AND (CAST(:target AS text) IS NULL OR entry.target = :target)
  AND (CAST(:kind AS text) IS NULL OR entry.kind = :kind)
  AND (CAST(:person AS text) IS NULL OR entry.person = :person)
  AND (CAST(:since_us AS bigint) IS NULL OR entry.at >= fencerow.at(CAST(:since_us AS bigint)))
ORDER BY entry.id DESC
LIMIT CAST(:limit AS integer);

-- name: purge_entries
-- Remove what is older than :age_s. Guard: that.
DELETE FROM fencerow.audit AS entry
WHERE entry.id = ANY(ARRAY(
    SELECT past.id
    FROM fencerow.audit AS past
    WHERE past.at < (SELECT fencerow.now()) - fencerow.seconds(CAST(:age_s AS double precision))
    ORDER BY past.at
    LIMIT CAST(:limit AS integer)
    FOR UPDATE SKIP LOCKED))
RETURNING entry.id;
