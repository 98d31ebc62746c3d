-- What the tables are made of, to be compared with what the migrations make.

-- name: shape
-- Tables and indexes of ours in both files: kind, name and the text that made them. An index that SQLite makes for a
-- constraint has no text; the table's tells of it.
SELECT made.type, made.name, made.sql
FROM (SELECT type, name, tbl_name, sql FROM main.sqlite_master
      UNION ALL
      SELECT type, name, tbl_name, sql FROM fencerow.file.sqlite_master) AS made
WHERE made.type IN ('table', 'index') AND made.sql IS NOT NULL AND substr(made.tbl_name, 1, length(:schema)) = :schema
ORDER BY made.type, made.name;
