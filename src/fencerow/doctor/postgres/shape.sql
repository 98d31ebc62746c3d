-- What the tables are made of, to be compared with what the migrations make.

-- name: shape
-- Columns, indexes, constraints, domains, sequences, views and functions of the schema: kind, name and definition, without the schema's own
-- name. Partitions are made and dropped as time goes by, so only what they hang from is told.
WITH part AS (
    SELECT one.oid, one.relname, one.relkind
    FROM pg_class AS one
    WHERE one.relnamespace = to_regnamespace(CAST(:schema AS text))
      AND NOT one.relispartition
)
SELECT found.kind, found.name, replace(found.definition, quote_ident(CAST(:schema AS text)) || '.', '')
FROM (SELECT 'column' AS kind, part.relname || '.' || field.attname AS name,
             format_type(field.atttypid, field.atttypmod) || CASE WHEN field.attnotnull THEN ' NOT NULL' ELSE '' END AS definition
      FROM part
      JOIN pg_attribute AS field ON field.attrelid = part.oid
      WHERE part.relkind IN ('r', 'p', 'v') AND field.attnum > 0 AND NOT field.attisdropped
      UNION ALL
      -- An index that was not built to its end is none. That of a constraint is told with the constraint: made again by
      -- itself it would stand in the way of that.
      SELECT 'index', part.relname, pg_get_indexdef(part.oid) || CASE WHEN made.indisvalid THEN '' ELSE ' INVALID' END
      FROM part
      JOIN pg_index AS made ON made.indexrelid = part.oid
      WHERE NOT EXISTS (SELECT 1 FROM pg_constraint AS rule WHERE rule.conindid = part.oid AND rule.contype IN ('p', 'u', 'x'))
      UNION ALL
      -- Whether a column may be empty is told with it; newer servers also count that as a constraint. One that was added
      -- without a look at older rows holds for new ones just the same.
      SELECT 'constraint', part.relname || '.' || rule.conname, replace(pg_get_constraintdef(rule.oid), ' NOT VALID', '')
      FROM part
      JOIN pg_constraint AS rule ON rule.conrelid = part.oid
      WHERE rule.contype IN ('c', 'f', 'p', 'u', 'x')
      UNION ALL
      SELECT 'domain', kind.typname, format_type(kind.typbasetype, kind.typtypmod) || COALESCE(' ' || pg_get_constraintdef(rule.oid), '')
      FROM pg_type AS kind
      LEFT JOIN pg_constraint AS rule ON rule.contypid = kind.oid
      WHERE kind.typtype = 'd' AND kind.typnamespace = to_regnamespace(CAST(:schema AS text))
      UNION ALL
      -- Those that stand alone: one of a column is told with it.
      SELECT 'sequence', part.relname, format_type(alone.seqtypid, -1)
      FROM part
      JOIN pg_sequence AS alone ON alone.seqrelid = part.oid
      WHERE NOT EXISTS (SELECT 1 FROM pg_depend AS owned WHERE owned.objid = part.oid AND owned.deptype IN ('a', 'i'))
      UNION ALL
      -- What an immutable one says stands in indexes: statements find them by its text alone.
      SELECT 'function', routine.proname,
             pg_get_function_identity_arguments(routine.oid)
             || CASE WHEN routine.provolatile = 'i' THEN ' AS ' || replace(routine.prosrc, '"' || CAST(:schema AS text) || '".', '') ELSE '' END
      FROM pg_proc AS routine
      WHERE routine.pronamespace = to_regnamespace(CAST(:schema AS text))) AS found
ORDER BY found.kind, found.name, found.definition;
