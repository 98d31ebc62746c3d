"""Moving all jobs from a SQLite file to PostgreSQL, with all that belongs to them. The guide: docs/guide/moving.md."""
