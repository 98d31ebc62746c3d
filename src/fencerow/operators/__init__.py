"""What people do to a running system: workers changed, queues paused.

The guide: docs/operations.md.
"""
