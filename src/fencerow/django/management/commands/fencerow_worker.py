"""`manage.py fencerow_worker`: a process that runs the project's tasks and jobs; `fencerow worker` with its options."""

from __future__ import annotations

import os
import sys
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

APP = "fencerow.django.worker:app"


class Command(BaseCommand):
    """Everything that `fencerow worker` takes is taken here, and means the same."""

    help = (
        "Run the project's tasks and jobs until SIGTERM or SIGINT. Takes the options of `fencerow worker`, such as "
        "-Q mail:5,default:20, --slots, --processes, --health, --once, --drain. With --reload it starts anew when a "
        "source file changes."
    )

    def create_parser(self, prog_name: str, subcommand: str, **kwargs: Any) -> Any:
        """Django's own options come first; `--help` says ours too."""
        return super().create_parser(
            prog_name, subcommand, usage=f"{prog_name} {subcommand} [OPTIONS]", **kwargs
        )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Only what `fencerow worker` has not."""
        parser.add_argument("--reload", action="store_true", help="Start anew when a source file changes.")

    def run_from_argv(self, argv: list[str]) -> None:
        """Pass on what Django does not know."""
        parser = self.create_parser(argv[0], argv[1])
        known, rest = parser.parse_known_args(argv[2:])
        self.execute(*rest, **vars(known))

    def handle(self, *args: str, reload: bool = False, **_: Any) -> None:
        """Run the worker. Ends the process with its exit code."""
        from fencerow.cli.main import main

        _let_children_find(sys.path[0])
        if reload:
            main(["dev", "-A", APP, "--no-dashboard", *args])
        main(["worker", "-A", APP, *args])


def _let_children_find(folder: str) -> None:
    """Worker processes are started anew, and must find the project where `manage.py` lies."""
    known = os.environ.get("PYTHONPATH", "")
    if folder and folder not in known.split(os.pathsep):
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (folder, known)))
