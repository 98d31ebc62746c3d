"""`--loop uvloop`: the tests run in uvloop's event loop, and what they start does, too: processes of Python, and forks.

It reads a socket by other rules, so it has shown waits without an end that the event loop of Python itself hid.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tests.kit.servers import ENVIRONMENT

IN_UVLOOP = Path(__file__).with_name("in_uvloop")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--loop", choices=("uvloop",), help="play all in this event loop, in child processes too"
    )


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--loop") is not None:
        sys.path.insert(0, str(IN_UVLOOP))  # some tests hand theirs on
        os.environ["PYTHONPATH"] = ENVIRONMENT["PYTHONPATH"] = module_path(IN_UVLOOP)
        from tests.kit.in_uvloop import sitecustomize  # noqa: F401 (this process)


def module_path(*folders: Path) -> str:
    """PYTHONPATH of a child process: these folders, and those of this run."""
    return os.pathsep.join([*map(str, folders), *filter(None, [os.environ.get("PYTHONPATH")])])
