"""Options of other systems' worker commands, for who types them by habit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import click

HOW_MANY: Final = ("--slots", "--at-once")  # of a worker; of a limit
OURS: Final[Mapping[str, str | tuple[str, ...]]] = {
    **dict.fromkeys(("-c", "--concurrency", "--threads", "--max-jobs", *HOW_MANY), HOW_MANY),
    **dict.fromkeys(("--workers", "--num-workers", "--worker-processes"), "--processes"),
    **dict.fromkeys(("-l", "--loglevel", "--verbose"), "--log-level"),
    **dict.fromkeys(("-q", "--queue"), "--queues"),
    **dict.fromkeys(("-n", "--hostname"), "--name"),
    "--burst": "--once",
}


def option_meant(error: click.UsageError) -> str | None:
    """The option of this command that means the one which it does not have, if there is one."""
    if not isinstance(error, click.NoSuchOption) or error.ctx is None:
        return None
    ours = OURS.get(error.option_name, ())
    known = {name for each in error.ctx.command.params for name in each.opts}
    return next((each for each in ([ours] if isinstance(ours, str) else ours) if each in known), None)
