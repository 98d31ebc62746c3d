"""Delivering events: which partitions this process reads, and how it hands their events to the user's functions."""
