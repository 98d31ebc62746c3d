"""Processes of tests that begin at once: forks of one that has imported what they need, without threads or connections.

A fresh interpreter that imports our modules takes half a second of a core. A fork is a real process all the same: it
may be killed, and nobody shares its connections.
"""

from __future__ import annotations

import os
from multiprocessing import forkserver
from multiprocessing.context import ForkServerContext, ForkServerProcess
from pathlib import Path

from tests.kit.servers import ENVIRONMENT

ROOT = Path(__file__).resolve().parents[2]


class Fork(ForkServerProcess):
    """Has the environment of the run, whatever the test that forks first has put into its own.

    The server finds our modules by the folder in which it starts. It says nothing of those that it does not find.
    """

    def start(self) -> None:
        environment, folder = dict(os.environ), Path.cwd()
        try:
            _become(ENVIRONMENT)
            os.chdir(ROOT)
            forkserver.ensure_running()
        finally:
            os.chdir(folder)
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
        "tests.kit.warm",
        "tests.core.schema.starter",
        "tests.migrations.runner",
        "tests.proof.crash.dying",
        "tests.proof.storm.member",
    ]
)
