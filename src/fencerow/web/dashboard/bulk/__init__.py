"""Bulk actions: what is meant is counted and shown before, then done in bounded portions, and told afterwards."""
