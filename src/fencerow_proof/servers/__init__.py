"""Servers that only proofs need: a pooler, and a standby."""
