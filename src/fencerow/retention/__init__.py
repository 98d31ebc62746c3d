"""What goes when it is old enough: finished jobs in periods, the rest in short batches.

The guide: docs/guide/retention.md.
"""
