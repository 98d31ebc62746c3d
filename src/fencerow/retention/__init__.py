"""Removal of what is old enough: finished jobs in whole periods, the rest in short batches.

The guide: docs/guide/retention.md.
"""
