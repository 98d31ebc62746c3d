"""Child processes, in which jobs run that may take their process down.

The guide: docs/guide/processes.md.
"""
