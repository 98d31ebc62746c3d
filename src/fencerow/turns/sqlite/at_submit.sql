-- What a submit does for the first job of a key of which no job is live. See turns/at_submit.py.

-- fragment: free for who comes first
-- Those of these gates of keys where nobody has a turn and nobody waits, who would go first, and that are of no paused queue.
FROM (SELECT gate.value AS gate, queue.value AS queue
      FROM json_each(:gates) AS gate JOIN json_each(:queues) AS queue ON queue.key = gate.key) AS place
WHERE NOT EXISTS (SELECT 1 FROM fencerow.jobs AS holder
                  WHERE holder.exclusive = substr(place.gate, 5) AND holder.state IN ('queued', 'running'))
  AND NOT EXISTS (SELECT 1 FROM fencerow.jobs AS waiting WHERE waiting.gate = place.gate AND waiting.state = 'waiting')
  AND NOT EXISTS (SELECT 1 FROM fencerow.queues AS queue WHERE queue.name = place.queue AND queue.paused_at IS NOT NULL)

-- name: free_gates
-- Where a job that needs limits too may wait at one of them.
SELECT place.gate
{{free for who comes first}};

-- name: free_turns
-- Those where no turn is kept for another and no instant is noted, either. Where a queue is passed over others go first, and
-- there are none. The file's one write lock is held already. A turn is not stored: the jobs of a key that are queued or running
-- have its turns.
SELECT place.gate
{{free for who comes first}}
  AND NOT EXISTS (SELECT 1 FROM fencerow.gates AS gate
                  WHERE gate.name = place.gate AND (gate.next_at IS NOT NULL OR gate.kept_until IS NOT NULL));
