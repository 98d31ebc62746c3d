-- API tokens: made, judged by the database's clock, revoked once, forgotten.

-- fragment: is live
-- Nobody has revoked it, and its time is not over.
token.revoked_at IS NULL
  AND (token.expires_at IS NULL OR token.expires_at > (SELECT fencerow.now()))

-- fragment: record of a token
-- In the order of `TokenRecord`. The hash is no part of it.
CAST(json_build_array(
    token.id, token.name, token.scopes, token.queues, fencerow.us(token.created_at), token.created_by,
    fencerow.us(token.expires_at), fencerow.us(token.revoked_at), token.revoked_by, fencerow.us(token.last_used_at),
    fencerow.us(fencerow.now())
) AS text)

-- name: create_token
-- Make a token whose id and hash the client made. Guard: there is none of that id, so that it may be repeated.
INSERT INTO fencerow.api_tokens (id, name, hash, scopes, queues, created_at, created_by, expires_at)
SELECT CAST(:id AS uuid), :name, :hash, CAST(:scopes AS text[]), CAST(:queues AS text[]), clock.now, CAST(:actor AS text),
       clock.now + fencerow.seconds(CAST(:expires_s AS double precision))
FROM (SELECT fencerow.now() AS now) AS clock
ON CONFLICT (id) DO NOTHING
RETURNING id;

-- name: read_token
-- The token of this id.
SELECT {{record of a token}} FROM fencerow.api_tokens AS token WHERE token.id = CAST(:id AS uuid);

-- name: list_tokens
-- All tokens, those of one name side by side, the newest first.
SELECT {{record of a token}} FROM fencerow.api_tokens AS token ORDER BY token.name, token.created_at DESC, token.id;

-- name: tokens_of_hashes
-- The tokens of these hashes, also those that are over: whoever asks tells them apart.
SELECT token.hash, {{record of a token}} FROM fencerow.api_tokens AS token WHERE token.hash = ANY(CAST(:hashes AS text[]));

-- name: revoke_token
-- Let nobody pass with a token any more. Guard: it is live; of two that revoke it one wins, and the other finds why not.
UPDATE fencerow.api_tokens AS token
SET revoked_at = fencerow.now(), revoked_by = CAST(:actor AS text)
WHERE token.id = CAST(:id AS uuid) AND {{is live}}
RETURNING token.id;

-- name: note_use
-- Note that these tokens were used. Guard: nobody has noted it within :fresh_s; a time that lies ahead was noted before the
-- clock went back. Who is locked is being noted or revoked, and is passed over.
UPDATE fencerow.api_tokens AS token
SET last_used_at = fencerow.now()
WHERE token.id = ANY(ARRAY(SELECT used.id FROM fencerow.api_tokens AS used
                           WHERE used.id = ANY(CAST(:ids AS uuid[]))
                           FOR UPDATE SKIP LOCKED))
  AND (token.last_used_at IS NULL
       OR token.last_used_at NOT BETWEEN (SELECT fencerow.now()) - fencerow.seconds(CAST(:fresh_s AS double precision))
                                     AND (SELECT fencerow.now()))
RETURNING token.id;

-- name: forget_tokens
-- Remove what has been over for so long. Guard: that; nothing makes a token live again.
DELETE FROM fencerow.api_tokens AS token
WHERE token.id = ANY(ARRAY(
    SELECT past.id
    FROM fencerow.api_tokens AS past
    WHERE COALESCE(past.revoked_at, past.expires_at) < (SELECT fencerow.now())
                                                       - fencerow.seconds(CAST(:age_s AS double precision))
    ORDER BY COALESCE(past.revoked_at, past.expires_at)
    LIMIT CAST(:limit AS integer)
    FOR UPDATE SKIP LOCKED))
RETURNING token.id;
