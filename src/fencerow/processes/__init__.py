"""Child processes for jobs that may crash their process.

The guide: docs/guide/processes.md.
"""
