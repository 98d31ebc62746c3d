"""Options that every command takes, before or after its name, and the settings they lead to."""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import unquote

import click

from fencerow.core.composed import config_type
from fencerow.core.config import COMMAND_PREFIX, CoreConfig, is_injected
from fencerow.core.errors import ConfigError, InvalidInput
from fencerow.db.url import masked

F = TypeVar("F", bound=Callable[..., Any])


@dataclass
class CommandOptions:
    """What was asked on the command line, shared by a group and its commands; the last word counts."""

    url: str | None = None
    schema: str | None = None
    table_prefix: str | None = None
    app: str | None = None
    json: bool = False
    utc: bool = False
    full: bool = False
    debug: bool = False
    arguments: tuple[str, ...] = ()  # all of the command line, as it was given

    def app_name(self) -> str | None:
        """The application's `module:name`, from -A or FENCEROW_APP."""
        return self.app or os.environ.get("FENCEROW_APP", "").strip() or None

    def config(self, **more: Any) -> CoreConfig:
        """Settings from the environment and these options."""
        return config_type().load(
            os.environ, url=self.url, schema=self.schema, table_prefix=self.table_prefix, **more
        )


def asked(context: click.Context) -> CommandOptions:
    """The options so far."""
    found: CommandOptions = context.ensure_object(CommandOptions)
    return found


def _keep(context: click.Context, parameter: click.Parameter, value: Any) -> None:
    if value not in (None, False):
        setattr(asked(context), str(parameter.name), value)


def _flag(name: str, says: str) -> Callable[[F], F]:
    """A flag that every command of a group takes, also from the environment."""
    return click.option(
        f"--{name}",
        name,
        is_flag=True,
        envvar=f"{COMMAND_PREFIX}{name.upper()}",
        callback=_keep,
        expose_value=False,
        help=says,
    )


def _keep_url(context: click.Context, parameter: click.Parameter, value: str | None) -> None:
    if value is not None and any(masked(form) != form for form in (value, unquote(value))):
        # The value is not repeated: it would reach the terminal's log as well.
        raise InvalidInput(
            "the database URL on the command line holds a password",
            "every user of the machine can read the arguments of a process",
            "set FENCEROW_URL, or leave the password to PGPASSFILE (~/.pgpass)",
        )
    _keep(context, parameter, value)


def database_options(command: F) -> F:
    """--url, --schema, --table-prefix and --debug."""
    for option in reversed(
        (
            click.option(
                "--url",
                metavar="URL",
                callback=_keep_url,
                expose_value=False,
                help="The database, without a password.  [env: FENCEROW_URL]",
            ),
            click.option(
                "--schema",
                metavar="NAME",
                callback=_keep,
                expose_value=False,
                help="The PostgreSQL schema of the tables.  [env: FENCEROW_SCHEMA]",
            ),
            click.option(
                "--table-prefix",
                metavar="PREFIX",
                callback=_keep,
                expose_value=False,
                help="The prefix of the tables' names on SQLite.  [env: FENCEROW_TABLE_PREFIX]",
            ),
            _flag("debug", "Show the traceback of an unexpected error."),
        )
    ):
        command = option(command)
    return command


def app_option(command: F) -> F:
    """-A: the application whose jobs and settings are meant."""
    return click.option(
        "-A",
        "--app",
        "app",
        metavar="MODULE:APP",
        callback=_keep,
        expose_value=False,
        help="The application, for example shop.jobs:app.  [env: FENCEROW_APP]",
    )(command)


def json_option(command: F) -> F:
    """--json: one JSON document instead of a table."""
    return _flag("json", "Print one JSON document and nothing else.")(command)


def utc_option(command: F) -> F:
    """--utc: exact times in the table. JSON has them anyway."""
    return _flag("utc", "Show exact times in UTC instead of `3 s ago`.")(command)


def full_option(command: F) -> F:
    """--full: whole ids at a terminal. Pipes and JSON have them anyway."""
    return _flag("full", "Show whole ids at a terminal, too, instead of their last eight digits.")(command)


def usual_options(command: F) -> F:
    """What nearly every command takes: --json, and which database and application are meant."""
    return json_option(database_options(app_option(command)))


def limit_option(default: int, *, most: int = 10_000) -> Callable[[F], F]:
    """--limit: how many of a long list are shown."""
    return click.option(
        "--limit",
        type=click.IntRange(1, most),
        default=default,
        show_default=True,
        help="Show at most this many.",
    )


def refuse_unknown_variables(root: click.Group, environ: Mapping[str, str]) -> None:
    """A misspelled twin of an option must not be passed over.

    Raises:
        ConfigError: a FENCEROW_CLI_ variable belongs to no option.
    """
    given = sorted(name for name in environ if name.startswith(COMMAND_PREFIX))
    known = set(_variables(root, COMMAND_PREFIX.rstrip("_"))) if given else set()
    for name in given:
        if name not in known and not is_injected(name, environ[name]):
            close = difflib.get_close_matches(name, sorted(known), n=1, cutoff=0.6)
            raise ConfigError(
                f"{ascii(name)[1:-1][:100]} belongs to no option of the command",
                "it has no effect",
                f"did you mean {close[0]}?" if close else "unset it; docs/cli.md lists the options",
            )


def _variables(command: click.Command, prefix: str) -> Iterator[str]:
    for parameter in command.params:
        if isinstance(parameter, click.Option) and parameter.name and parameter.allow_from_autoenv:
            yield f"{prefix}_{parameter.name.upper()}"
            if isinstance(parameter.envvar, str):
                yield parameter.envvar
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            child = command.get_command(context, name)
            assert child is not None
            yield from _variables(child, f"{prefix}_{name.upper().replace('-', '_')}")
