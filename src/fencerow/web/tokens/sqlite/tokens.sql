-- API tokens: made, judged by the database's clock, revoked once, forgotten.

-- fragment: is live
-- Nobody has revoked it, and its time is not over.
token.revoked_at IS NULL
  AND (token.expires_at IS NULL OR token.expires_at > fencerow.now())

-- fragment: record of a token
-- In the order of `TokenRecord`. The hash is no part of it.
json_array(
    token.id, token.name, json(token.scopes), json(token.queues), token.created_at, token.created_by, token.expires_at,
    token.revoked_at, token.revoked_by, token.last_used_at, fencerow.now()
)

-- name: create_token
-- Make a token whose id and hash the client made. Guard: there is none of that id, so that it may be repeated.
INSERT INTO fencerow.api_tokens (id, name, hash, scopes, queues, created_at, created_by, expires_at)
SELECT :id, :name, :hash, :scopes, :queues, clock.now, :actor, clock.now + CAST(:expires_s * 1000000 AS INTEGER)
FROM (SELECT fencerow.now() AS now) AS clock
WHERE true
ON CONFLICT (id) DO NOTHING
RETURNING id;

-- name: read_token
-- The token of this id.
SELECT {{record of a token}} FROM fencerow.api_tokens AS token WHERE token.id = :id;

-- name: list_tokens
-- All tokens, those of one name side by side, the newest first.
SELECT {{record of a token}} FROM fencerow.api_tokens AS token ORDER BY token.name, token.created_at DESC, token.id;

-- name: tokens_of_hashes
-- The tokens of these hashes, also those that are over: whoever asks tells them apart.
SELECT token.hash, {{record of a token}}
FROM fencerow.api_tokens AS token
WHERE token.hash IN (SELECT value FROM json_each(:hashes));

-- name: revoke_token
-- Let nobody pass with a token any more. Guard: it is live; of two that revoke it one wins, and the other finds why not.
UPDATE fencerow.api_tokens AS token
SET revoked_at = fencerow.now(), revoked_by = :actor
WHERE token.id = :id AND {{is live}}
RETURNING id;

-- name: note_use
-- Note that these tokens were used. Guard: nobody has noted it within :fresh_s; a time that lies ahead was noted before the
-- clock went back.
UPDATE fencerow.api_tokens AS token
SET last_used_at = fencerow.now()
WHERE token.id IN (SELECT value FROM json_each(:ids))
  AND (token.last_used_at IS NULL
       OR token.last_used_at NOT BETWEEN fencerow.now() - CAST(:fresh_s * 1000000 AS INTEGER) AND fencerow.now())
RETURNING id;

-- name: forget_tokens
-- Remove what has been over for so long. Guard: that; nothing makes a token live again.
DELETE FROM fencerow.api_tokens
WHERE id IN (
    SELECT past.id
    FROM fencerow.api_tokens AS past
    WHERE COALESCE(past.revoked_at, past.expires_at) < fencerow.now() - CAST(:age_s * 1000000 AS INTEGER)
    ORDER BY COALESCE(past.revoked_at, past.expires_at)
    LIMIT :limit)
RETURNING id;
