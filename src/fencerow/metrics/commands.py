"""`fencerow metrics`: what Prometheus would be told of the database, once or on a port of its own."""

from __future__ import annotations

import signal
import sys
from contextlib import ExitStack
from functools import partial

import click

from fencerow.command.database import resolved, working
from fencerow.command.options import app_option, asked, database_options
from fencerow.command.output import warn
from fencerow.command.patience import reach_patiently
from fencerow.core.config import CoreConfig
from fencerow.db.engine import Engine
from fencerow.db.errors import exits
from fencerow.metrics.page import CONTENT_TYPE, DatabaseMetrics
from fencerow.supervisor.probes import ProbePage, Probes, listening, parsed_address, waiting_at
from fencerow.supervisor.standing import Standing

PATH = "/metrics"
SIGNALS = (signal.SIGTERM, signal.SIGINT)


@click.command()
@click.option(
    "--bind",
    metavar="[ADDRESS:]PORT",
    help="Answer /metrics there until SIGTERM or SIGINT; without an address, to this machine only.",
)
@database_options
@app_option
@click.pass_context
def metrics(context: click.Context, bind: str | None) -> int:
    """Print the metrics of the database in the text format of Prometheus.

    With --bind it serves them, for a host without workers. What workers count of their own work is at their own port:
    see `fencerow worker --metrics`.
    """
    wanted = asked(context)
    address = None if bind is None else parsed_address(bind, "--bind")
    config = resolved(wanted)
    if address is None:
        with working(wanted) as engine:
            sys.stdout.write(_of(engine, config).page().decode())
        return exits.OK
    with ExitStack() as stack:
        bound = stack.enter_context(listening(address))
        patiently = partial(reach_patiently, meanwhile=lambda: waiting_at(bound), tell=warn)
        found = _of(stack.enter_context(working(wanted, reach_server=patiently)), config)
        # Before the port is open: whoever has reached it may ask this process to end.
        signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
        well = Standing(is_ready=True, is_leaving=False, status="serves metrics")
        with Probes(bound, lambda: well, {PATH: ProbePage(CONTENT_TYPE, found.page)}):
            signal.sigwait(SIGNALS)
    return exits.OK


def _of(engine: Engine, config: CoreConfig) -> DatabaseMetrics:
    return DatabaseMetrics(lambda: engine, config)
