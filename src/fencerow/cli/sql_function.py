"""`fencerow sql --function`: a function with which other languages, triggers and migrations submit jobs in SQL.

Its body is the very statement with which a client submits one job (`submit_one`), so a row looks the same by whatever
way it came. What the application declares of each job is written into it: print it again when a declaration changes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from fencerow.core.app import JobsApp
from fencerow.core.app.submission import Recipe
from fencerow.core.errors import InvalidInput
from fencerow.core.model.job import Template
from fencerow.core.model.packing import PLAIN
from fencerow.core.store.tables import postgres_queries
from fencerow.db.queries import identifier

PARAMETER = re.compile(r"(?<![:\w]):([a-z_]+)")
# What a caller may say of a job, its type, and whether the job's own counts where nothing is said.
ARGUMENTS = (
    ("job", "text", None),
    ("args", "json", "'{}'"),
    ("queue", "text", "NULL"),
    ("priority", "integer", "NULL"),
    ("delay_s", "double precision", "0"),
    ("run_at", "timestamptz", "NULL"),
    ("expires_s", "double precision", "NULL"),
    ("share", "text", "NULL"),
    ("tags", "text[]", "NULL"),
    ("metadata", "json", "NULL"),
    ("headers", "json", "NULL"),
    ("submitted_by", "text", "session_user"),
    ("id", "uuid", None),
)
# A UUIDv7 as clients make it: milliseconds since 1970, then random bits.
NEW_ID = (
    "CAST(encode(set_bit(set_bit(overlay(uuid_send(gen_random_uuid()) PLACING substring(int8send("
    "CAST(floor(extract(epoch FROM clock_timestamp()) * 1000) AS bigint)) FROM 3) FROM 1 FOR 6), 52, 1), 53, 1), 'hex')"
    " AS uuid)"
)
# Where the parameters of the statement come from; the others are columns of what is declared.
SAID = {
    "id": "submit.id",
    "name": "declared.name",
    "queue": "COALESCE(submit.queue, declared.queue)",
    "priority": "COALESCE(submit.priority, declared.priority)",
    "run_at_us": "{schema}.us(submit.run_at)",
    "delay_s": "submit.delay_s",
    "expires_s": "COALESCE(submit.expires_s, declared.expires_s)",
    "scope": "NULL",
    "key": "NULL",
    "submitted_by": "submit.submitted_by",
    "args": "submit.args",
    "args_bytes": "octet_length(CAST(submit.args AS text))",
    "tags": "array_to_json(submit.tags)",
    "metadata": "submit.metadata",
    "headers": "submit.headers",
    "more": "submit.share",
}
DECLARED = (
    ("name", "text"),
    ("queue", "text"),
    ("priority", "integer"),
    ("attempts_max", "integer"),
    ("crashes_max", "integer"),
    ("snoozes_max", "integer"),
    ("timeout_s", "double precision"),
    ("expires_s", "double precision"),
    ("retention_s", "double precision"),
    ("options", "text"),
    ("ephemeral", "boolean"),
)


@dataclass(frozen=True, slots=True)
class ToldJobs:
    """The jobs that the function submits, and those that need more than one row."""

    templates: Mapping[str, Template]
    others: tuple[str, ...]


def function_sql(app: JobsApp, *, submit: str) -> str:
    """The function for the jobs of this app, and who may call it.

    Raises:
        InvalidInput: the app seals its payloads or keeps large ones outside, which SQL cannot do.
    """
    if app.client.packing is not PLAIN:
        raise InvalidInput(
            "--function was given for an application that packs its payloads",
            "SQL can neither seal nor sign them, nor put them into a store",
            "submit with a client, or over HTTP",
        )
    schema, role = (
        f'"{identifier(name, what)}"'
        for name, what in ((app.config.schema, "schema name"), (submit, "role name"))
    )
    arguments = ", ".join(
        f"{name} {kind}" + ("" if default is None else f" DEFAULT {default}")
        for name, kind, default in ARGUMENTS[:-1]
    )
    kinds = ", ".join(kind for _, kind, _ in ARGUMENTS)
    return f"""CREATE OR REPLACE FUNCTION {schema}.submit(
    {arguments},
    id uuid DEFAULT {NEW_ID}
) RETURNS uuid LANGUAGE plpgsql VOLATILE SECURITY INVOKER SET search_path = pg_catalog AS $submit$
#variable_conflict use_column
{_body(schema, told_of(app), app.config.payload_bytes_max, app.config.schema)}
$submit$;
GRANT EXECUTE ON FUNCTION {schema}.submit({kinds}) TO {role};"""


def told_of(app: JobsApp) -> ToldJobs:
    """What the app declares, divided by whether one row is all that a submit writes."""
    calls = {name: job.call_later() for name, job in sorted(app.jobs.items())}
    templates = {name: app.as_stored(call).template for name, call in calls.items() if _is_plain(call.recipe)}
    return ToldJobs(templates, tuple(name for name in calls if name not in templates))


def _is_plain(recipe: Recipe) -> bool:
    return not recipe.agreed


def _body(schema: str, told: ToldJobs, bytes_max: int, bare: str) -> str:
    statement = postgres_queries(bare)["submit_one"].statements[0]
    said = {name: text.format(schema=schema) for name, text in SAID.items()}
    written = PARAMETER.sub(lambda found: said.get(found[1], f"declared.{found[1]}"), statement)
    written = written.replace(
        "AS now) AS clock",
        "AS now) AS clock\nCROSS JOIN (" + _table(told.templates.values()) + ") AS declared\n"
        "WHERE declared.name = submit.job",
    )
    return f"""DECLARE
    stored boolean;
BEGIN
    IF submit.job = ANY({_array(told.others)}) THEN
        RAISE EXCEPTION 'job % needs a client: it has turns, a unique key, a label or a handover',
                quote_literal(submit.job)
            USING ERRCODE = 'feature_not_supported', HINT = 'submit it with a client, or over HTTP';
    END IF;
    IF json_typeof(submit.args) IS DISTINCT FROM 'object' OR CAST(submit.args AS text) LIKE '%\\u0000%' THEN
        RAISE EXCEPTION 'the arguments of job % are no JSON object without \\u0000', quote_literal(submit.job)
            USING ERRCODE = 'invalid_parameter_value', HINT = 'name each argument: {{"path": "a.pdf"}}';
    END IF;
    IF octet_length(CAST(submit.args AS text)) > {bytes_max} THEN
        RAISE EXCEPTION 'the arguments of job % are larger than {bytes_max} bytes', quote_literal(submit.job)
            USING ERRCODE = 'program_limit_exceeded', HINT = 'store them elsewhere, and submit a reference';
    END IF;
{_indented(written, "    ")}
    INTO stored;
    IF stored IS NULL THEN
        RAISE EXCEPTION 'no job % is declared, or a trigger left its row out', quote_literal(submit.job)
            USING ERRCODE = 'undefined_object', HINT = 'print this function again: fencerow sql --function';
    END IF;
    RETURN submit.id;
END"""


def _table(templates: Iterable[Template]) -> str:
    """What is declared, as rows."""
    columns = ", ".join(name for name, _ in DECLARED)
    rows = [", ".join(_literal(getattr(each, name)) for name, _ in DECLARED) for each in templates]
    first = ", ".join(f"CAST(NULL AS {kind})" for _, kind in DECLARED)
    values = ",\n        ".join(f"({row})" for row in (first, *rows))
    # The values are what was declared, as literals; there is no text of a caller in it.
    return f"\n    SELECT {columns} FROM (VALUES\n        {values}\n    ) AS known ({columns})\n"  # noqa: S608


def _literal(value: str | float | bool | None) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        doubled = value.replace("'", "''")
        return f"'{doubled}'"
    return repr(value)


def _array(names: Iterable[str]) -> str:
    return f"CAST(ARRAY[{', '.join(map(_literal, names))}] AS text[])"


def _indented(text: str, by: str) -> str:
    return "\n".join(by + line for line in text.splitlines())
