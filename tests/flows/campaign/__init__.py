"""Flows while their workers are killed again and again: a small one in the tests, a long one by `dev.py flows`."""
