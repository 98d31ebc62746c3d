-- What limits say where attempts of the core's fail.

-- at: when attempts have failed
-- A failure is told to each limit with a breaker that binds its job, whoever knows what that makes of it. Where nobody has
-- a breaker, one look at a table of nothing is all.
told AS (
    INSERT INTO fencerow.limit_failures (name, at, started_at)
    SELECT told.name, moved.at, moved.claimed_at
    FROM moved
    CROSS JOIN LATERAL (
        SELECT named.name, split_part(named.name, '/', 1) AS known FROM unnest(moved.limits) AS named (name)
        UNION ALL
        SELECT bound.name, bound.name FROM (VALUES ('queue:' || moved.queue), ('fleet')) AS bound (name)
    ) AS told
    WHERE moved.has_failed
      AND EXISTS (SELECT 1 FROM fencerow.watched_limits AS watched WHERE watched.name IN (told.name, told.known))
)
