"""What `--help` says, and what a word is told that is no command."""

from __future__ import annotations

import click
import pytest

from fencerow.cli.main import root
from fencerow.cli.sections import SECTIONS
from fencerow.db.errors import exits
from tests.cli.conftest import Cli
from tests.cli.test_json import commands

GENERAL = ("--url", "--schema", "--table-prefix", "--debug", "--app", "--json")


def test_own_options_stand_before_those_of_all_commands() -> None:
    mixed: dict[str, list[str]] = {}
    for name, command in commands(root):
        options = [
            each.opts[-1] for each in command.params if isinstance(each, click.Option) and not each.hidden
        ]
        own = [each for each in options if each not in GENERAL]
        if own and options.index(own[-1]) >= len(own):
            mixed[name] = options

    assert mixed == {}


def test_a_command_beside_other_files_says_how_a_file_is_named(cli: Cli) -> None:
    refused = cli("jobs")

    assert refused.error == "FR-105"
    assert "worker" not in refused.err and "there is no fencerow.db here" in refused.err
    assert "sqlite:///hello.db" in refused.err


def test_every_command_is_in_one_section_and_the_exit_codes_are_all_there(cli: Cli) -> None:
    told = cli("--help").out
    named = [name for names in SECTIONS.values() for name in names]

    assert sorted(named) == root.list_commands(click.Context(root)), "a new command needs a section"
    assert all(f"\n{section}:\n" in told for section in SECTIONS) and "Others" not in told
    codes = {each for name, each in vars(exits).items() if name.isupper()}
    assert all(f" {code} " in " ".join(told.split()) for code in codes)


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("list", "`fencerow jobs list`"),
        ("retry", "`fencerow jobs revive`"),
        ("sumbit", "`fencerow submit`"),
        ("redrive", "`fencerow events redrive`"),
    ],
)
def test_a_word_that_is_no_command_is_told_which_one_is_meant(cli: Cli, word: str, meant: str) -> None:
    refused = cli(word)

    assert (refused.code, refused.error) == (2, "FR-201")
    assert refused.err.splitlines()[-1] == f"did you mean {meant}?"
