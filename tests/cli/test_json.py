"""What lists or shows something has `--json`; what has not is named here, each with its reason."""

from __future__ import annotations

from collections.abc import Iterator

import click

from fencerow.cli.main import root

CHANGES = "changes something and says in a line what came of it"
RUNS = "runs until it is told to end"
WITHOUT = {
    **dict.fromkeys(
        (
            "backfills pause", "backfills resume", "queues pause", "queues resume",
            "events discard", "events redrive", "events remove", "events replay",
        ),
        CHANGES,
    ),
    **dict.fromkeys(("demo", "dev", "worker"), RUNS),
    "sql": "prints statements, which are no table",
}  # fmt: skip


def commands(command: click.Command, name: str = "") -> Iterator[tuple[str, click.Command]]:
    """All that does something by itself: commands, and groups that list without a verb."""
    if not isinstance(command, click.Group):
        yield name, command
        return
    for each, member in command.commands.items():
        yield from commands(member, f"{name} {each}".strip())


def has_json(command: click.Command) -> bool:
    return any("--json" in parameter.opts for parameter in command.params)


def test_what_lists_or_shows_has_json() -> None:
    found = dict(commands(root))

    assert {name for name, command in found.items() if not has_json(command)} == WITHOUT.keys()
    assert len(found) > 30


def test_a_group_that_lists_without_a_verb_has_it_too() -> None:
    groups = [each for each in root.commands.values() if isinstance(each, click.Group)]
    listing = [each for each in groups if each.invoke_without_command]

    assert listing and all(map(has_json, listing))
