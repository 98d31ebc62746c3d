"""`fencerow check`, `history` and `rerun`: they come with the package of proofs, if that is installed."""

from __future__ import annotations

import click

from fencerow.core.errors import MissingExtra

PACKAGE = "fencerow_proof"
NAMES = ("history", "check", "rerun")
TOLD = "Not installed: comes with fencerow[proof]."
TAKES_ALL = {"ignore_unknown_options": True, "allow_extra_args": True}


def proof_commands() -> tuple[click.Command, ...]:
    """Those of the package; where it is missing, commands of the same names that say what to install."""
    try:
        from fencerow_proof.commands import COMMANDS  # the one place that asks for it
    except ModuleNotFoundError as error:
        if error.name != PACKAGE:
            raise
        return tuple(map(_absent, NAMES))
    return COMMANDS


def _absent(name: str) -> click.Command:
    @click.command(name, help=TOLD, add_help_option=False, context_settings=TAKES_ALL)
    def refuse() -> None:
        raise MissingExtra(
            f"`fencerow {name}` needs the package fencerow-proof, which is not installed",
            "the proofs are a package of their own, so that programs without them install less",
            'python -m pip install "fencerow[proof]"',
        )

    return refuse
