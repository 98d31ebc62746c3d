"""The horizon of a database: who holds an old snapshot, so that dead rows stay and claims walk over them.

The guide: docs/guide/doctor.md.
"""
