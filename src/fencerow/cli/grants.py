"""What the database's owner grants on PostgreSQL to those who work with the tables without owning them."""

from __future__ import annotations

from fencerow.core.wing import wings
from fencerow.db.queries import identifier


def _of_wings(*, keyed: bool) -> tuple[str, ...]:
    """What the tables of wings need, so that their options can be submitted."""
    return tuple(
        f"GRANT {grant.what.replace(' ON ', ' ON {schema}.')} TO {{role}};"
        for wing in wings()
        for grant in wing.granted
        if grant.keyed == keyed
    )


# What a submit writes. Column by column: a submitter reads no payload, and writes nothing that makes a job look as
# if it had run: of the states, those of finished jobs are refused by a constraint. Counters and holders are the
# workers' own.
SUBMITTED = (
    "id, queue, name, priority, run_at, attempts_max, crashes_max, snoozes_max, timeout_s, expires_at, "
    "retention_s, scope, key, submitted_at, submitted_by, args_bytes, args, options, tags, metadata, headers, "
    "ephemeral, subscribed, state, gate, exclusive, exclusive_at_once, strict, limits, share, affinity, affinity_wait_s"
)
SUBMIT = (
    "GRANT USAGE ON SCHEMA {schema} TO {role};",
    "GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA {schema} TO {role};",
    f"GRANT INSERT ({SUBMITTED}), SELECT (id) ON {{schema}}.jobs TO {{role}};",
    "GRANT SELECT ON {schema}.schema_migrations TO {role};",
    "GRANT SELECT (outcomes) ON {schema}.event_groups TO {role};",
    "GRANT SELECT (id) ON {schema}.repeated_ids TO {role};",
    "GRANT SELECT ON SEQUENCE {schema}.repeats_until TO {role};",
    "GRANT INSERT (gate) ON {schema}.gate_arrivals TO {role};",
    "GRANT SELECT (name, state, info, lease_until, registered_at) ON {schema}.workers TO {role};",
    "GRANT SELECT ON {schema}.limits TO {role};",
    "GRANT SELECT (id) ON {schema}.payload_owner TO {role};",
    *_of_wings(keyed=False),
)
KEYED = (
    "GRANT SELECT (id, state, attempt), DELETE ON {schema}.jobs TO {role};",
    "GRANT SELECT (id) ON {schema}.finished_jobs TO {role};",
    "GRANT SELECT (id) ON {schema}.spent_ids TO {role};",
    "GRANT INSERT ON {schema}.repeated_ids TO {role};",
    "GRANT UPDATE ON SEQUENCE {schema}.repeats_until TO {role};",
    "GRANT SELECT, INSERT, DELETE ON {schema}.keys TO {role};",
    *_of_wings(keyed=True),
)
REPEATED = (
    "GRANT SELECT (id, name, args, scope, key) ON {schema}.all_jobs TO {role};",
    "GRANT SELECT (id, job_id, kind, detail) ON {schema}.job_events TO {role};",
)
UNIQUE = (
    "GRANT SELECT, INSERT, UPDATE ON {schema}.unique_jobs TO {role};",
    "GRANT SELECT, UPDATE ON {schema}.jobs TO {role};",
    "GRANT SELECT (id, state, holder, attempt) ON {schema}.finished_jobs TO {role};",
    "GRANT SELECT (id, state, holder, attempt, cancel_requested_at) ON {schema}.all_jobs TO {role};",
    "GRANT SELECT (id, attempt) ON {schema}.spent_ids TO {role};",
    "GRANT SELECT, INSERT ON {schema}.job_events TO {role};",
    "GRANT SELECT (job_id, state), UPDATE (receiver, key, hold_s, name) ON {schema}.handovers TO {role};",
)
# A job that waits for others is made to wait right after its insert. Nothing of an end can be written.
MEMBERS = "job_id, flow_id, name, job_name, place, level, stage, is_read, woken_at"
FLOWS = (
    "GRANT INSERT (id, name, digest, submit_id, jobs, queues, submitted_at, submitted_by) ON {schema}.flows TO {role};",
    "GRANT SELECT (id, digest, submit_id) ON {schema}.flows TO {role};",
    f"GRANT INSERT ({MEMBERS}) ON {{schema}}.flow_jobs TO {{role}};",
    "GRANT INSERT (job_id, before_id, flow_id, policy) ON {schema}.flow_edges TO {role};",
    "GRANT INSERT (job_id, flow_id, outcome, job) ON {schema}.flow_callbacks TO {role};",
    "GRANT SELECT (id, state, attempt), UPDATE (state, gate) ON {schema}.jobs TO {role};",
)
PUBLISH = ("GRANT INSERT, SELECT (id) ON {schema}.events TO {role};",)
WORKER = (
    "GRANT USAGE ON SCHEMA {schema} TO {role};",
    "GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA {schema} TO {role};",
    "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {schema} TO {role};",
    "GRANT SELECT, UPDATE ON SEQUENCE {schema}.repeats_until TO {role};",
    "REVOKE INSERT, UPDATE, DELETE ON {schema}.schema_migrations, {schema}.schema_work FROM {role};",
)


def grants(schema: str, *, worker: str, submit: str) -> str:
    """The statements for a role that runs and steers jobs, and for one that only submits them."""
    return "\n".join(
        [
            "-- A role that runs, reads and steers jobs, and cannot change the schema:",
            *filled(WORKER, schema, worker),
            "",
            "-- A role that submits jobs without a key, and can neither read, cancel nor delete any:",
            *filled(SUBMIT, schema, submit),
            "",
            "-- For keys and for ids of its own it must also be able to take back what it has just inserted. Whoever",
            "-- holds the role could then delete jobs that have not ended, though still not read them:",
            *(f"-- {line}" for line in filled(KEYED, schema, submit)),
            "",
            "-- To submit again under an id of its own, besides: to know it as the same work means to compare. Whoever",
            "-- holds the role could then read names, arguments and keys of all jobs, though no result and no error:",
            *(f"-- {line}" for line in filled(REPEATED, schema, submit)),
            "",
            "-- For unique jobs, which a submit looks at and may replace. Whoever holds the role could then read and",
            "-- change jobs that have not ended, and to whom their ends are handed over, though read or write no end:",
            *(f"-- {line}" for line in filled(UNIQUE, schema, submit)),
            "",
            "-- To submit flows. Whoever holds the role could then keep jobs that wait from starting, though",
            "-- not read them:",
            *(f"-- {line}" for line in filled(FLOWS, schema, submit)),
            "",
            "-- To publish events as well. It can read none:",
            *(f"-- {line}" for line in filled(PUBLISH, schema, submit)),
        ]
    )


def filled(lines: tuple[str, ...], schema: str, role: str) -> list[str]:
    names = {"schema": f'"{identifier(schema, "schema name")}"', "role": f'"{identifier(role, "role name")}"'}
    return [line.format(**names) for line in lines]
