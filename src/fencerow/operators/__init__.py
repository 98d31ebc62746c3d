"""What operators do to a running system: change workers, pause queues.

The guide: docs/operations.md.
"""
