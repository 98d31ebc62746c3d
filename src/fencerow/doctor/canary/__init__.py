"""A canary: a job of our own whose worker process is killed on purpose, to measure how fast its work comes back.

The guide: docs/guide/doctor.md.
"""
