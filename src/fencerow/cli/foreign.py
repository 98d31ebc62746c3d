"""Options of other systems' worker commands, for who types them by habit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import click

HOW_MANY: Final = ("--slots", "--at-once")  # of a worker; of a limit
OURS: Final[Mapping[str, str | tuple[str, ...]]] = {
    **dict.fromkeys(("-c", "--concurrency", "--threads", "--max-jobs", "--max-workers", *HOW_MANY), HOW_MANY),
    **dict.fromkeys(("--workers", "--num-workers", "--worker-processes"), "--processes"),
    **dict.fromkeys(("-l", "--loglevel", "--verbose"), "--log-level"),
    **dict.fromkeys(("-q", "--queue"), "--queues"),
    **dict.fromkeys(("-n", "--hostname"), "--name"),
    "--burst": "--once",
}
# What they mean where they are ours.
OUR_WORDS: Final[Mapping[str, str]] = {
    "--slots": "slots are a worker's: how many jobs one process runs at a time",
    "--at-once": "that is said of a key or a limit, over all workers together; one worker has slots",
}


def option_meant(error: click.UsageError) -> tuple[str, str] | None:
    """Why the command has not this option, and the one of it that is meant, if there is one."""
    if not isinstance(error, click.NoSuchOption) or error.ctx is None:
        return None
    ours = OURS.get(error.option_name, ())
    known = {name for each in error.ctx.command.params for name in each.opts}
    meant = next((each for each in ([ours] if isinstance(ours, str) else ours) if each in known), None)
    if meant is None:
        return None
    return OUR_WORDS.get(error.option_name, "that is another system's word for it"), f"write {meant}"
