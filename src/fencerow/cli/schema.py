"""`fencerow migrate` and `fencerow sql`: the schema, applied or printed."""

from __future__ import annotations

from pathlib import Path

import click

from fencerow.cli.grants import grants
from fencerow.cli.sql_function import function_sql
from fencerow.command import output
from fencerow.command.app_loading import load_app
from fencerow.command.database import actor, opened, parsed_path, reach, resolved
from fencerow.command.options import CommandOptions, app_option, asked, database_options, usual_options
from fencerow.command.progress import progress, shows
from fencerow.core.config import CoreConfig
from fencerow.core.errors import InvalidInput, SchemaMissing, Unavailable
from fencerow.core.schema.migrate import broken_indexes, judged, ledger, ledger_name, refuse_foreign
from fencerow.core.schema.migrate import migrate as migrate_engine
from fencerow.core.schema.rooms import known_migrations
from fencerow.core.store.tables import postgres_queries, sqlite_queries
from fencerow.db.engine import Engine
from fencerow.db.errors import exits
from fencerow.db.filesystem import refuse_network
from fencerow.db.migration import Migration
from fencerow.db.queries import postgres_names, qualified, sqlite_names
from fencerow.db.url import SqliteUrl, parse_url


@click.command()
@click.option("--plan", is_flag=True, help="Only say which migrations are missing.")
@usual_options
@click.pass_context
def migrate(context: click.Context, plan: bool) -> int:
    """Apply the migrations that the database lacks. Safe to repeat, and to run from many processes at once."""
    config = resolved(asked(context))
    migrations, broken = planned(config) if plan else (migrated(config, json=asked(context).json), [])
    if asked(context).json:
        listed = [
            {"version": each.version, "name": each.name, "indexes": each.built_concurrently}
            for each in migrations
        ]
        output.say_json({"plan": plan, "migrations": listed, "broken": broken})
        return exits.OK
    verb = "would be applied" if plan else "applied"
    for each in migrations:
        output.say(f"{each.version:04d}  {each.name}  {verb}")
        for index in each.built_concurrently:
            output.say(f"      index {index}: built beside the work of others")
    for index in broken:
        output.say(f"index {index} was not built to its end: would be built again")
    if not migrations and not broken:
        output.say("the schema is up to date")
    return exits.OK


def migrated(config: CoreConfig, *, json: bool) -> list[Migration]:
    """Apply what is missing, with a bar for who looks; makes the SQLite file where there is none."""
    _reach_or_make(config)
    with opened(config) as engine:
        missing = _missing(engine) if shows(json=json) else []
        with progress("migrate", len(missing), json=json) as bar:
            left = [_named(each) for each in missing]
            bar.to(0, next(iter(left), None))

            def told(migration: Migration) -> None:
                if _named(migration) in left:
                    left.remove(_named(migration))
                bar.to(len(missing) - len(left), next(iter(left), None))

            def said(text: str) -> None:
                if bar.bar is None:
                    output.warn(text)
                else:
                    bar.to(len(missing) - len(left), text)

            return migrate_engine(engine, actor=actor(config), tell=said, on_applied=told)


def planned(config: CoreConfig) -> tuple[list[Migration], list[str]]:
    """What is missing, and which indexes are not whole. Makes nothing, not even the file."""
    try:
        reach(config)
    except SchemaMissing:
        return known_migrations("sqlite"), []
    with opened(config) as engine:
        try:
            refuse_foreign(engine)
        except SchemaMissing:
            return known_migrations("sqlite"), []
        return _missing(engine), broken_indexes(engine)


def _missing(engine: Engine) -> list[Migration]:
    applied = engine.run(ledger(ledger_name(engine)))
    return judged(applied, known_migrations(engine.dialect))


def _named(migration: Migration) -> str:
    return f"{migration.version:04d} {migration.name}"


def _reach_or_make(config: CoreConfig) -> None:
    try:
        reach(config)
    except SchemaMissing:
        path = Path(parsed_path(config.url or ""))
        refuse_network(path)
        if not path.absolute().parent.is_dir():
            raise Unavailable(
                f"there is no folder {path.absolute().parent}",
                "this command makes the file, but not its folder",
                "make the folder, or correct the URL",
            ) from None


@click.command()
@click.option(
    "--dialect",
    type=click.Choice(["postgres", "sqlite"]),
    help="Use this dialect instead of that of the database's URL.",
)
@click.option("--grants", "grants_only", is_flag=True, help="Print the privileges alone (PostgreSQL).")
@click.option(
    "--function",
    "function_only",
    is_flag=True,
    help="Print a function that submits the application's jobs in SQL (PostgreSQL).",
)
@click.option("--worker-role", metavar="ROLE", default="fencerow_worker", show_default=True)
@click.option("--submit-role", metavar="ROLE", default="fencerow_submit", show_default=True)
@database_options
@app_option
@click.pass_context
def sql(
    context: click.Context,
    dialect: str | None,
    grants_only: bool,
    function_only: bool,
    worker_role: str,
    submit_role: str,
) -> int:
    """Print the schema's SQL, and on PostgreSQL the privileges that a worker and a submitter need."""
    if function_only:
        return _function(asked(context), dialect, submit_role)
    config = asked(context).config()
    if dialect is None:
        url = parse_url(config.url) if config.url else None
        dialect = "sqlite" if isinstance(url, SqliteUrl) else "postgres"
    if grants_only and dialect == "sqlite":
        raise InvalidInput(
            "--grants was given for SQLite", "who may use a file may do everything", "leave it out"
        )
    if not grants_only:
        output.say_block(schema_sql(dialect, config))
        output.say()
    if dialect == "postgres":
        output.say_block(grants(config.schema, worker=worker_role, submit=submit_role))
    return exits.OK


def _function(wanted: CommandOptions, dialect: str | None, submit_role: str) -> int:
    app = load_app(wanted.app_name(), url=wanted.url)
    if dialect == "sqlite" or not app.engine.traits.takes_copy:
        raise InvalidInput(
            "--function was given for SQLite",
            "it has no stored functions",
            "submit with a client, or over HTTP",
        )
    output.say_block(function_sql(app, submit=submit_role))
    return exits.OK


def schema_sql(dialect: str, config: CoreConfig) -> str:
    """Every migration as it would be applied, and the ledger."""
    if dialect == "sqlite":
        rename, queries = sqlite_names(config.table_prefix), sqlite_queries(config.table_prefix)
    else:
        rename, queries = postgres_names(config.schema), postgres_queries(config.schema)
    head = [f'CREATE SCHEMA IF NOT EXISTS "{config.schema}";'] if dialect == "postgres" else []
    ledger_text = "\n\n".join(f"{queries[name].statements[0]};" for name in ("make_ledger", "make_work"))
    migrations = [
        f"-- migration {each.version:04d}: {each.name}\n{qualified(each.text, rename)}"
        for each in known_migrations(dialect)
    ]
    return "\n\n".join([*head, ledger_text, *migrations])
