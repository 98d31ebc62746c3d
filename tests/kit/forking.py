"""Processes of tests that begin at once: forks of one that has imported what they need, without threads or connections.

A fresh interpreter that imports our modules takes half a second of a core. A fork is a real process all the same: it
may be killed, and nobody shares its connections.
"""

from __future__ import annotations

import os
from multiprocessing import forkserver
from multiprocessing.context import ForkServerContext, ForkServerProcess

from tests.kit.servers import ENVIRONMENT


class Fork(ForkServerProcess):
    """Has the environment of the run, whatever the test that forks first has put into its own."""

    def start(self) -> None:
        environment = dict(os.environ)
        try:
            _become(ENVIRONMENT)
            forkserver.ensure_running()
        finally:
            _become(environment)
        super().start()


class Forks(ForkServerContext):
    """Where `Process` is such a fork."""

    Process = Fork


def _become(environment: dict[str, str]) -> None:
    os.environ.clear()
    os.environ.update(environment)


context = Forks()
# All of them: one such server is all that a process of tests has, and who starts it first must not leave others' out.
context.set_forkserver_preload(
    [
        "fencerow.cli.jobs",
        "fencerow.cli.worker",
        "fencerow.core.db.postgres",
        "tests.core.store.starter",
        "tests.migrations.runner",
        "tests.proof.crash.dying",
        "tests.proof.storm.member",
    ]
)
