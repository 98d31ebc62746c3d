"""Each test in a folder of its own, with no variable of the machine."""

from __future__ import annotations

from tests.cli import conftest as command_line

_clean = command_line._clean  # used by each test
cli, shop, url = command_line.cli, command_line.shop, command_line.url
