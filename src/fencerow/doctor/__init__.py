"""Everything that can be wrong with a database, its server, its clock and what lies queued in it.

The guide: docs/guide/doctor.md.
"""
