-- What a check of a history asks the database at the end of a run. Only the first one changes anything.

-- name: create_effects
-- Where handlers note what they did, inside job.transaction(): a row must be there exactly once for each success.
CREATE TABLE IF NOT EXISTS fencerow.effect (job uuid NOT NULL, attempt bigint NOT NULL, holder uuid);

-- name: final_rows
-- Every job, live and finished, with the instants of its last attempt, and last of which only the id is left: the
-- ephemeral that succeeded.
SELECT job.id, job.name, job.state, job.attempt, job.holder, job.failures, job.crashes, job.scope, job.key,
       fencerow.us(job.claimed_at), fencerow.us(job.ended_at), false
FROM fencerow.all_jobs AS job
UNION ALL
SELECT spent.id, '', 'succeeded', spent.attempt, NULL, 0, 0, NULL, NULL, NULL, fencerow.us(spent.ended_at), true
FROM fencerow.spent_ids AS spent
WHERE NOT EXISTS (SELECT 1 FROM fencerow.all_jobs AS job WHERE job.id = spent.id);

-- name: final_events
-- What was noted about jobs, in the order in which it was noted of each.
SELECT note.job_id, note.kind, note.attempt, fencerow.us(note.at),
       CAST(note.detail ->> 'claimed_at_us' AS bigint), note.detail ->> 'became'
FROM fencerow.job_events AS note
ORDER BY note.job_id, note.id;

-- name: final_effects
SELECT noted.job, noted.attempt FROM fencerow.effect AS noted;
