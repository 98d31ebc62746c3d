-- What queries of several files have in common, and both dialects say alike.

-- fragment: is suspended
-- It waits at no place: it holds no slot, no lease and no turn.
(job.state = 'waiting' AND job.{{where it waits}} IS NULL)

-- fragment: limited
-- Whether a limit bounds the claims of this queue, or of all.
(SELECT EXISTS (SELECT 1 FROM fencerow.queues AS queue WHERE queue.name IN (:queue, '') AND queue.limited))
