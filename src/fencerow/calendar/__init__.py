"""Hours as people say them, `mon-fri 09:00-17:00 Europe/Berlin`: read, and found on the clock of a zone.

Limits and schedules stand on it, so they read the same texts and refuse the same ones.
"""
