"""The exit codes of the command; docs/cli.md has the table."""

from __future__ import annotations

OK = 0
FAILED = 1  # what was asked about failed, or is not there
REFUSED = 2  # usage, settings or input; nothing was stored
UNAVAILABLE = 3  # the database
SCHEMA = 4  # its tables are missing, too old, too new or not ours
JOB_FAILED = 5  # with --wait: the job ended failed or cancelled
TIMED_OUT = 6  # with --wait: the job goes on
BLOCKED = 7  # a worker that ended its process, whose event loop was blocked
SAMPLED = 8  # a check found nothing, but tried only a sample of the orders
UNEXPECTED = 70  # a fault of ours
INTERRUPTED = 130
BROKEN_PIPE = 141  # whoever read our output left, as `head` does
