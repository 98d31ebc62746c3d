"""Loaded by the server of forks (tests/kit/forking.py): what a worker asks for at its start, so that no fork must.

What is missing here costs a fork more, and changes nothing else.
"""

from __future__ import annotations

import fencerow.app
import fencerow.audit.operations
import fencerow.batches.batches
import fencerow.cli.main
import fencerow.cli.worker
import fencerow.db.postgres
import fencerow.db.sqlite
import fencerow.events.asides
import fencerow.events.retention
import fencerow.guards.purges
import fencerow.handovers.mender
import fencerow.limits.locked
import fencerow.processes.running
import fencerow.retention.maintenance
import fencerow.schedules.appside
import fencerow.schedules.chores
import fencerow.web.tokens.operations
import fencerow.web.webhooks.keeping  # noqa: F401
from fencerow.core.store import store

for queries in (store.postgres_queries(), store.sqlite_queries()):
    dict(queries)  # read
