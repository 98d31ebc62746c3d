-- Whether anything of this wing is there: until it is, no worker loads what looks after it.

-- name: web_used
-- A row, if there are API tokens, webhooks, their deliveries, or attempts worked over HTTP; else none.
SELECT 1
WHERE EXISTS (SELECT 1 FROM fencerow.api_tokens)
   OR EXISTS (SELECT 1 FROM fencerow.webhook_endpoints)
   OR EXISTS (SELECT 1 FROM fencerow.webhook_deliveries)
   OR EXISTS (SELECT 1 FROM fencerow.webhook_attempts)
   OR EXISTS (SELECT 1 FROM fencerow.worked_attempts);
