"""`fencerow maintenance`: what it says, to people and to programs."""

from __future__ import annotations

from tests.cli import conftest as command_line
from tests.cli.conftest import Cli

_clean, cli, url = command_line._clean, command_line.cli, command_line.url  # fixtures


def test_the_command_begins_shows_and_ends_it(cli: Cli, url: str) -> None:
    assert cli("maintenance").out == "the gateways take requests\n"
    begun = cli("maintenance", "on", "--reason", "a move", "--retry-after", "90")
    again = cli("maintenance", "on", "--reason", "another", "--json")
    shown = cli("maintenance", "show")
    document = cli("maintenance", "--json").json

    assert (begun.out, again.json) == (
        "the gateways are under maintenance\n",
        {"on": True, "changed": False},
    )
    assert shown.out.startswith("under maintenance, ") and shown.out.endswith(": a move\n")
    assert (document["on"], document["reason"], document["retry_after_s"]) == (True, "a move", 90)
    assert cli("maintenance", "off").out == "the gateways take requests again\n"
    assert cli("maintenance", "off").out == "the gateways take requests already\n"
    assert cli("maintenance", "show", "--json").json["on"] is False
