"""The commands as a person looks for them: in sections of `fencerow --help`, and by a word that is none of them."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator

import click

from fencerow.core.errors import InvalidInput
from fencerow.db.errors import exits

SECTIONS = {
    "Jobs": ("dev", "worker", "serve", "submit", "jobs"),
    "What goes on, and why": ("top", "queues", "workers", "why", "doctor", "canary", "audit"),
    "When, and how many at once": ("schedules", "exclusive", "limits", "shares", "mutexes"),
    "Flows, steps and what comes of jobs": ("flows", "steps", "saga", "signal", "output", "handovers"),
    "Events and other systems": ("events", "relay", "webhooks"),
    "Over HTTP": ("dashboard", "metrics", "tokens", "maintenance", "mcp"),
    "Databases": ("migrate", "sql", "move", "audit-celery", "shards", "backfills"),
    "Measure and check": ("plan", "bench", "check", "rerun", "history", "demo"),
    "This command": ("completion", "version"),
}
EMPTY_A_QUEUE = "jobs cancel --only-queued --queue NAME"
# What other systems call it, or what one may call it.
WORDS = {
    "retry": "jobs revive",
    **dict.fromkeys(("start", "beat", "scheduler", "consumer", "runworker", "run-worker"), "worker"),
    "status": "top",
    "ps": "jobs list --state running",
    **dict.fromkeys(("enqueue", "call", "send", "apply"), "submit"),
    **dict.fromkeys(("flower", "ui", "monitor"), "dashboard"),
    "inspect": "workers",
    **dict.fromkeys(("kill", "revoke", "abort", "jobs kill", "jobs stop"), "jobs cancel"),
    **dict.fromkeys(("init", "setup", "upgrade"), "migrate"),
    **dict.fromkeys(("purge", "jobs purge", "queues purge", "queues clear", "queues empty"), EMPTY_A_QUEUE),
    **dict.fromkeys(("jobs retry", "jobs requeue"), "jobs revive"),
    **dict.fromkeys(("jobs rm", "jobs remove"), "jobs delete"),
    **dict.fromkeys(("workers stop", "workers kill", "workers shutdown"), "workers drain"),
}
SENTENCE_MAX = 300
NO_SUCH = re.compile(r"No such command '([\w-]+)'")
EXIT_CODES = (
    f"Exit codes: {exits.OK} done, {exits.FAILED} failed or not found, {exits.REFUSED} refused, "
    f"{exits.UNAVAILABLE} database, {exits.SCHEMA} schema; with --wait {exits.JOB_FAILED} job failed, "
    f"{exits.TIMED_OUT} it goes on; {exits.BLOCKED} a worker's event loop was blocked, {exits.SAMPLED} `check` tried a "
    f"sample only, {exits.UNEXPECTED} an unexpected error, {exits.INTERRUPTED} interrupted, "
    f"{exits.BROKEN_PIPE} nobody reads the output. docs/cli.md says more."
)


def write_sections(group: click.Group, context: click.Context, formatter: click.HelpFormatter) -> None:
    """All commands in their sections; one that has none stands at the end."""
    names = group.list_commands(context)
    others = tuple(name for name in names if not any(name in each for each in SECTIONS.values()))
    room = formatter.width - max(map(len, names)) - 6
    for section, members in {**SECTIONS, "Others": others}.items():
        commands = {name: group.get_command(context, name) for name in members if name in names}
        rows = [(name, _in_short(each, room)) for name, each in commands.items() if each is not None]
        if rows:
            with formatter.section(section):
                formatter.write_dl(rows, col_spacing=2)


def _in_short(command: click.Command, room: int) -> str:
    """Its first sentence; of one that is longer than a line what stands before the colon, if it has one."""
    whole = command.get_short_help_str(SENTENCE_MAX)
    before, colon, _ = whole.partition(": ")
    return f"{before}." if len(whole) > room and colon else whole


def unknown_command(group: click.Group, context: click.Context, name: str) -> InvalidInput:
    """What to tell who typed a word that is no command: it may be one of a group, or one of another system."""
    names = group.list_commands(context)
    close = difflib.get_close_matches(name, names, n=3, cutoff=0.6)
    meant = [WORDS[name]] if name in WORDS else list(_in_groups(group, context, name)) or close
    return InvalidInput(
        f"there is no command {ascii(name)[:60]}",
        f"the commands are {', '.join(names)}",
        f"did you mean {' or '.join(f'`fencerow {each}`' for each in meant)}?"
        if meant
        else "see `fencerow --help`",
    )


def meant_by(error: click.UsageError) -> str | None:
    """The command that another system calls as the group of this error has none, if there is one."""
    found = NO_SUCH.match(error.message)
    if found is None or error.ctx is None:
        return None
    return WORDS.get(f"{error.ctx.command.name} {found[1]}")


def _in_groups(group: click.Group, context: click.Context, name: str) -> Iterator[str]:
    """The groups that have a command of this name: `jobs` alone if it is one of them, as it is nearly always meant."""
    found = [
        each for each in group.list_commands(context) if _has(group.get_command(context, each), context, name)
    ]
    for each in ["jobs"] if "jobs" in found else found:
        yield f"{each} {name}"


def _has(command: click.Command | None, context: click.Context, name: str) -> bool:
    return isinstance(command, click.Group) and command.get_command(context, name) is not None
