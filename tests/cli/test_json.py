"""Every command has `--json`; the few that have not are named here, each with its reason."""

from __future__ import annotations

from collections.abc import Iterator

import click

from fencerow.cli.main import root

RUNS = "runs until it is told to end, and writes its log meanwhile (FENCEROW_LOG_FORMAT=json)"
WITHOUT = {
    **dict.fromkeys(("dashboard", "dev", "serve", "worker"), RUNS),
    "mcp": "speaks a protocol of its own, in JSON",
    "demo": "is a show for a person at a terminal",
    "sql": "prints statements for psql or sqlite3, and nothing else",
    "metrics": "prints what Prometheus reads, and nothing else",
    "completion": "prints a script for the shell, and nothing else",
}


def commands(command: click.Command, name: str = "") -> Iterator[tuple[str, click.Command]]:
    """All that does something by itself: commands, and groups that list without a verb."""
    if not isinstance(command, click.Group):
        yield name, command
        return
    context = click.Context(command)
    for each in command.list_commands(context):
        member = command.get_command(context, each)
        assert member is not None
        yield from commands(member, f"{name} {each}".strip())


def has_json(command: click.Command) -> bool:
    return any("--json" in parameter.opts for parameter in command.params)


def test_every_command_has_json() -> None:
    found = dict(commands(root))

    assert {name for name, command in found.items() if not has_json(command)} == WITHOUT.keys()
    assert len(found) > 30


def test_a_group_that_lists_without_a_verb_has_it_too() -> None:
    root.load()
    groups = [each for each in root.commands.values() if isinstance(each, click.Group)]
    listing = [each for each in groups if each.invoke_without_command]

    assert listing and all(map(has_json, listing))
