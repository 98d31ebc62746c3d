"""`fencerow completion`: what a shell needs to complete our commands, and the answers to its tab key."""

from __future__ import annotations

import os

import click
from click.shell_completion import get_completion_class, shell_complete

from fencerow.command import output
from fencerow.command.options import CommandOptions
from fencerow.core.config import COMMAND_PREFIX

PROGRAM = "fencerow"
VARIABLE = "_FENCEROW_COMPLETE"  # by which the shell asks us
SHELLS = ("bash", "zsh", "fish")


@click.command()
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the lines with which a shell completes commands, options, and names of queues and jobs.

    For bash: eval "$(fencerow completion bash)" in ~/.bashrc. For fish: fencerow completion fish | source.
    """
    made = get_completion_class(shell)
    assert made is not None
    output.say_block(made(context.find_root().command, {}, PROGRAM, VARIABLE).source())


def completed(root: click.Group) -> int | None:
    """Answer a shell that asks what may come next; None if none does."""
    instruction = os.environ.get(VARIABLE)
    if not instruction:
        return None
    settings = {"obj": CommandOptions(), "auto_envvar_prefix": COMMAND_PREFIX.rstrip("_")}
    try:
        return shell_complete(root, settings, PROGRAM, VARIABLE, instruction)
    except Exception:  # the person is about to type: an error would land in the middle of the line
        return 1
