"""Large changes of rows, range by range.

The guide: docs/guide/migrations.md.
"""
