"""Checks for everything that can be wrong with a database, its server, its clock and its queued jobs.

The guide: docs/guide/doctor.md.
"""
