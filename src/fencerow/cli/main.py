"""The `fencerow` command: its commands, and the one place where errors become lines and exit codes."""

from __future__ import annotations

import os
import platform
import sqlite3
import sys
import traceback
from collections.abc import Sequence
from importlib import import_module
from typing import NoReturn

import click

from fencerow import __version__
from fencerow.cli import logs
from fencerow.cli.completion import completed, completion
from fencerow.cli.foreign import option_meant
from fencerow.cli.process import prepare_process
from fencerow.cli.sections import EXIT_CODES, meant_by, unknown_command, write_sections
from fencerow.command import output
from fencerow.command.options import (
    CommandOptions,
    app_option,
    asked,
    database_options,
    json_option,
    refuse_unknown_variables,
)
from fencerow.core.config import COMMAND_PREFIX
from fencerow.core.errors import DatabaseError, FencerowError, InvalidInput
from fencerow.core.wing import wings
from fencerow.db.errors import exits
from fencerow.db.text import kind_and_text, said_of
from fencerow.db.trouble import is_shortage, out_of_resources
from fencerow.db.url import masked

# What is used all day, and where it lies. Each is loaded alone: a worker starts without what lists jobs, and without
# what the wings bring.
OFTEN = {
    "dev": "fencerow.cli.worker",
    "worker": "fencerow.cli.worker",
    "serve": "fencerow.cli.serve",
    "dashboard": "fencerow.cli.dashboard",
    "submit": "fencerow.cli.submit",
    "jobs": "fencerow.cli.jobs",
    "migrate": "fencerow.cli.schema",
    "sql": "fencerow.cli.schema",
}


class Commands(click.Group):
    """To load all commands takes several times as long as one of them: each comes when it is asked for."""

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.commands:
            self._load_often(cmd_name) if cmd_name in OFTEN else self.load()
        return super().get_command(ctx, cmd_name)

    def list_commands(self, ctx: click.Context) -> list[str]:
        self.load()
        return super().list_commands(ctx)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if not ctx.resilient_parsing and not name.startswith("-") and self.get_command(ctx, name) is None:
            raise unknown_command(self, ctx, name)
        return super().resolve_command(ctx, args)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The commands first: who asks for help here looks for one of them."""
        self.format_commands(ctx, formatter)
        click.Command.format_options(self, ctx, formatter)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        write_sections(self, ctx, formatter)

    def load(self) -> None:
        """Have all commands there, those of the wings and of the proofs too. It may be repeated."""
        from fencerow.cli.bench import bench
        from fencerow.cli.canary import canary
        from fencerow.cli.demo import demo
        from fencerow.cli.proof import proof_commands
        from fencerow.mcp.commands import mcp

        for name in OFTEN:
            self._load_often(name)
        of_wings = (command for wing in wings() for command in wing.commands())
        for command in (demo, bench, canary, mcp, *proof_commands(), *of_wings):
            self.add_command(command)

    def _load_often(self, name: str) -> None:
        command: click.Command = getattr(import_module(OFTEN[name]), name)
        self.add_command(command)


@click.group(
    cls=Commands,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog=EXIT_CODES,
)
@click.version_option(
    __version__,
    message="fencerow %(version)s",
    help="Print the version of Fencerow.",
    allow_from_autoenv=False,
)
@database_options
@app_option
@click.pass_context
def root(context: click.Context) -> None:
    """Durable jobs in your own PostgreSQL or SQLite database."""
    if context.invoked_subcommand is None:
        output.say_block(context.get_help())


@root.command()
@json_option
@click.pass_context
def version(context: click.Context) -> None:
    """Print the versions of Fencerow and of the libraries that it uses."""
    from importlib.metadata import version as version_of

    found = {
        "fencerow": __version__,
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
        "psycopg": version_of("psycopg"),
    }
    if asked(context).json:
        output.say_json(found)
    else:
        output.facts(found)


root.add_command(completion)


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """The entry point of the installed command."""
    prepare_process()
    logs.quiet()  # only `worker` and `dev` write a log
    sys.exit(run(sys.argv[1:] if arguments is None else list(arguments)))


def run(arguments: list[str]) -> int:
    """Run one command line; returns its exit code and lets no exception pass."""
    kept = CommandOptions(arguments=tuple(arguments))
    try:
        code = _run(arguments, kept)
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        # The interpreter would complain once more when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return exits.BROKEN_PIPE
    except (KeyboardInterrupt, click.Abort):
        output.warn("interrupted")
        return exits.INTERRUPTED
    except Exception as error:
        return _failed(error, debug=kept.debug or bool(os.environ.get(f"{COMMAND_PREFIX}DEBUG")))


def _run(arguments: list[str], kept: CommandOptions) -> int:
    refuse_unknown_variables(root, os.environ)
    prefix = COMMAND_PREFIX.rstrip("_")
    answered = completed(root)
    if answered is not None:
        return answered
    try:
        with root.make_context("fencerow", arguments, obj=kept, auto_envvar_prefix=prefix) as context:
            code = root.invoke(context)
            return code if isinstance(code, int) else exits.OK
    except click.exceptions.Exit as done:
        return done.exit_code


def _failed(error: Exception, *, debug: bool) -> int:
    known = _known(error)
    if debug:
        # An operator asked for it; the text may hold anything, but no escapes.
        for line in "".join(traceback.format_exception(error)).splitlines():
            output.warn(masked(line) if "://" in line else line)
    output.report(known or _unexpected(error))
    return known.exit_code if known else exits.UNEXPECTED


def _known(error: Exception) -> FencerowError | None:
    match error:
        case FencerowError():
            return error
        case click.UsageError():
            return _usage(error)
        case click.ClickException():
            return InvalidInput(error.format_message(), "", "see `fencerow --help`")
    if is_shortage(error):
        return out_of_resources("the command could not go on", error)
    return _of_database(error)


def _of_database(error: Exception) -> DatabaseError | None:
    import psycopg  # not before there is trouble: a command on SQLite never needs it

    if not isinstance(error, psycopg.Error | sqlite3.Error):
        return None
    text = (str(error).strip().splitlines() or [""])[0]
    return DatabaseError(
        "the database refused a statement", kind_and_text(type(error).__name__, text), "run `fencerow doctor`"
    )


def _usage(error: click.UsageError) -> InvalidInput:
    command = error.ctx.command_path if error.ctx else "fencerow"
    if isinstance(error, click.NoSuchOption) and (meant_by_it := option_meant(error)) is not None:
        return InvalidInput(f"{command} has no option {error.option_name}", *meant_by_it)
    meant = meant_by(error)
    message = " ".join((error.format_message() if meant is None else error.message).split())
    return InvalidInput(
        # A URL at the wrong place is shown here as well.
        masked(message) if "://" in message else message,
        _expected(error),
        f"see `{command} --help`" if meant is None else f"write `fencerow {meant}`",
    )


def _expected(error: click.UsageError) -> str:
    """The commands of a group, where one of them is missing or none of that name is known; else the usage."""
    if error.ctx is None:
        return ""
    if isinstance(error.ctx.command, click.Group) and not isinstance(error, click.NoSuchOption):
        names = error.ctx.command.list_commands(error.ctx)
        return f"the commands are {', '.join(names)}"
    return f"usage: {' '.join(error.ctx.get_usage().removeprefix('Usage: ').split())}"


def _unexpected(error: Exception) -> FencerowError:
    text = said_of(error)
    return FencerowError(
        f"unexpected {masked(text) if '://' in text else text}",
        "this is a fault in Fencerow or in the application, not in what you typed",
        "run it again with --debug for the traceback, and report it",
    )


if __name__ == "__main__":
    main()
