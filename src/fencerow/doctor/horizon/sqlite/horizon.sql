-- SQLite has no horizon: there a long reader keeps the write-ahead log from being reset, see `wal.py`.

-- name: end_session
-- There are no sessions, so none is ended.
SELECT :name WHERE :pid IS NULL AND :since_us IS NULL AND :since_us IS NOT NULL;
