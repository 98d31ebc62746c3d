"""The settings of one process, each with its unit, its default, its range and what it means."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Self

from fencerow.core.config.reading import from_environment
from fencerow.core.config.setting import Setting, check, number, text
from fencerow.core.config.variables import refuse_unknown_variables
from fencerow.core.errors import ConfigError, InvalidInput
from fencerow.core.model.backoff import Backoff
from fencerow.core.model.defaults import DAY_S, Defaults
from fencerow.core.model.seconds import keep_in_seconds
from fencerow.core.model.worker_labels import parsed_labels
from fencerow.db.url import PostgresUrl, masked, parse_url

IDENTIFIER = re.compile(r"[a-z_][a-z0-9_]{0,39}")
DRAIN_MARGIN_S = 15.0
MIB = 1024 * 1024
LOG_FORMATS = ("console", "json")
LOG_LEVELS = ("debug", "info", "warning", "error")


class Settings:
    """What one wing can be told: a frozen dataclass, each field made by `number` or `text`. `Config` has them all."""

    @classmethod
    def of(cls, config: CoreConfig) -> Self:
        """The wing's part of a process's settings; its defaults where a core runs without the wings."""
        whole: object = config
        return whole if isinstance(whole, cls) else cls()


@dataclass(frozen=True, kw_only=True)
class CoreConfig:
    """What the core can be told; see `fencerow.config.Config`, which has the wings' settings beside it."""

    # --- the database ---
    url: str | None = text(None, "The database. Without it SQLite in the working directory.", secret=True)
    listen_url: str | None = text(
        None, "A direct connection for LISTEN, where `url` leads through a pooler.", secret=True
    )
    schema: str = text("fencerow", "The PostgreSQL schema of the tables.")
    table_prefix: str = text("fencerow_", "The prefix of the tables' names on SQLite.")
    pool_max: int = number(
        10,
        2,
        1_000,
        "At most so many connections for threads, and as many for an event loop; see docs/postgresql.md.",
    )
    connect_timeout_s: float = number(5.0, 0.1, 300.0, "How long to wait for a new connection.")
    start_patience_s: float = number(
        60.0,
        0.0,
        300.0,
        "How long a command that runs until it is told to stop waits at its start for a PostgreSQL server that is not "
        "there yet, starts, or has no connection left.",
    )
    statement_timeout_s: float = number(
        30.0,
        0.1,
        3600.0,
        "How long PostgreSQL may take for one statement of ours. Then it is cancelled, or the connection given up.",
    )
    prepared_statements: str = text(
        "auto",
        "`auto`: PostgreSQL plans the statements of every job once for each connection of ours that leads to the "
        "server itself, not through a pooler. `off`: it plans them each time.",
        "auto",
        "off",
    )
    busy_timeout_s: float = number(10.0, 0.0, 300.0, "How long to wait for another writer on SQLite.")
    journal_mode: str = text(
        "auto",
        "SQLite's journal. `auto`: `wal` where the library is free of the WAL-reset fault, else `truncate`. Say `wal` "
        "with an older library only if no connection but ours ever opens the file.",
        "auto",
        "truncate",
        "wal",
    )

    # --- leases and loops ---
    lease_s: float = number(
        30.0, 1.0, 3600.0, "A worker that does not renew for so long is dead, and its jobs start again."
    )
    renew_s: float = number(
        5.0, 0.1, 1200.0, "How often a worker renews its lease; at least three times per lease."
    )
    sweep_s: float = number(
        15.0, 0.1, 3600.0, "How often the reaper looks for dead workers, timeouts and expired jobs."
    )
    poll_max_s: float = number(
        1.0,
        0.01,
        300.0,
        "The longest pause between two looks at an empty queue. On a SQLite file in `wal` mode a job whose wake-up was "
        "lost may be found up to 5 s late, however short this is.",
    )
    poll_min_s: float = number(0.05, 0.001, 60.0, "The shortest pause between two looks.")

    turn_claim_s: float = number(
        60.0,
        1.0,
        3650 * DAY_S,
        "A turn that nobody claims for so long goes to a job of another queue that waits for it.",
    )

    unknown_max_s: float = number(
        DAY_S, 1.0, 3650 * DAY_S, "A due job fails if no worker has known its name for so long."
    )

    # --- running jobs ---
    slots: int = number(10, 1, 10_000, "How many jobs one process runs at a time.")
    prefetch_s: float = number(1.0, 0.0, 60.0, "How much work, in seconds, a worker may claim ahead.")
    labels: str | None = text(
        None,
        "The labels that a worker carries, with commas between them: it takes the jobs whose `affinity` names one.",
    )
    priority_ageing_s: float | None = number(
        None,
        0.1,
        30 * DAY_S,
        "So many seconds that a job has been due count as one step of priority. By default they count nothing.",
    )
    payload_bytes_max: int = number(
        MIB,
        1_024,
        64 * MIB,
        "The largest arguments or result; store larger data elsewhere and pass a reference.",
    )
    log_format: str = text("console", "How processes write their log.", *LOG_FORMATS)
    log_level: str | None = text(
        None,
        "The lowest level that is logged. By default `info`; where the application has configured `logging` "
        "itself, as it says.",
        *LOG_LEVELS,
    )
    log_job_level: str = text(
        "info",
        "The level of the two lines that tell the start and the end of each job. Failures are told in any case.",
        "info",
        "debug",
    )
    actor: str | None = text(None, "The name under which changes are recorded; by default user and host.")

    # --- defaults of jobs ---
    attempts_max: int = number(3, 1, 10_000, "How many failed attempts end a job.")
    crashes_max: int = number(3, 1, 10_000, "How often a job may crash its process.")
    snoozes_max: int = number(
        48, 0, 1_000_000, "How often a job may snooze: the default is a day of half hours."
    )
    # A hung handler looks alive for as long as its process renews, so there must be a bound. A quarter of an
    # hour lets slow calls to models and documents end, and shows a hung one within the same working hour.
    timeout_s: float = number(900.0, 0.001, 30 * DAY_S, "How long one attempt may run.")
    key_lifetime_s: float = number(
        14 * DAY_S, 1.0, 3650 * DAY_S, "How long an idempotency key is remembered."
    )

    # --- child processes ---
    suspects_max: int = number(
        4,
        1,
        1_000,
        "How many suspects (jobs whose last worker died) run at once, each in its own child process.",
    )
    child_start_s: float = number(20.0, 0.5, 600.0, "How long a child process may take to start.")
    hung_max: int = number(
        10, 0, 10_000, "A worker drains and ends if more handlers than this ignore their end."
    )

    # --- stopping ---
    cancel_raise_s: float = number(
        5.0,
        0.0,
        3600.0,
        "A running job learns of a cancel within renew_s. Then it has so long to stop by itself.",
    )
    cancel_kill_s: float = number(
        10.0, 0.0, 3600.0, "After that it has so long to clean up before its process is killed."
    )
    shutdown_s: float | None = number(
        None,
        0.0,
        30 * DAY_S,
        "How long running jobs may take to finish at a stop; by default derived from the longest timeout.",
    )

    def __post_init__(self) -> None:
        keep_in_seconds(self, *(each.name for each in settings(type(self)) if each.name.endswith("_s")))
        for setting in settings(type(self)):
            check(setting, getattr(self, setting.name))
        _check_identifiers(self)
        _check_labels(self)
        _check_together(self)

    @classmethod
    def load(cls, environ: Mapping[str, str], **overrides: Any) -> Self:
        """Settings from the environment; an override that is not None wins.

        Raises:
            WrongCall: an override is no setting.
            ConfigError: the name of a variable is close to that of a setting (`fix` names the closest), or a value
                cannot be used. Secrets are never shown. Other unknown FENCEROW_ variables are logged as a warning,
                except those that Kubernetes sets for its services.
        """
        known = {setting.name: setting for setting in settings(cls)}
        refuse_unknown_variables(environ, known.values())
        if not overrides.keys() <= known.keys():
            from fencerow.core.model.misfit import refuse_unknown  # who writes no wrong call never loads it

            refuse_unknown(overrides, known, "load()")
        values = {name: from_environment(setting, environ) for name, setting in known.items()}
        given = [*values.items(), *overrides.items()]
        return cls(**{name: value for name, value in given if value is not None})

    def drain_s(self, longest_timeout_s: float) -> float:
        """How long a stopping worker lets its jobs finish; `longest_timeout_s` is the longest of theirs."""
        if self.shutdown_s is not None:
            return self.shutdown_s
        return longest_timeout_s + self.cancel_raise_s + self.cancel_kill_s + DRAIN_MARGIN_S

    def job_defaults(self) -> Defaults:
        """The first layer of job options, before those of app, queue, job and submit."""
        return Defaults(
            attempts_max=self.attempts_max,
            backoff=Backoff(),
            timeout_s=self.timeout_s,
            priority=0,
            crashes_max=self.crashes_max,
            snoozes_max=self.snoozes_max,
        )

    def __repr__(self) -> str:
        changed = [each for each in settings(type(self)) if getattr(self, each.name) != each.default]
        texts = [f"{each.name}={masked(repr(getattr(self, each.name)))}" for each in changed]
        return f"Config({', '.join(texts)})"


def settings(kind: type[CoreConfig]) -> tuple[Setting, ...]:
    """All settings of this kind of configuration, in the order of the reference."""
    return tuple(Setting(each.name, each.default, **each.metadata) for each in fields(kind))


def _check_identifiers(config: CoreConfig) -> None:
    for name in ("schema", "table_prefix"):
        value = getattr(config, name)
        # They become part of the SQL text, so nothing but plain lower-case names is let in.
        if not IDENTIFIER.fullmatch(value):
            raise ConfigError(
                f"{name} is {ascii(value)[:60]}",
                "a letter or _, then up to 39 lower-case letters, digits or _ are expected",
                f"choose another {name}",
            )
    if config.schema.startswith("pg_") or config.table_prefix.startswith("sqlite_"):
        raise ConfigError(
            "schema or table_prefix begins with a prefix that the database reserves",
            "pg_ and sqlite_ are reserved",
            "choose another name",
        )


def _check_labels(config: CoreConfig) -> None:
    try:
        parsed_labels(config.labels)
    except InvalidInput as error:
        raise ConfigError(f"labels: {error.what}", error.why, error.fix) from None


def _check_together(config: CoreConfig) -> None:
    if config.renew_s * 3 > config.lease_s:
        raise ConfigError(
            f"renew_s is {config.renew_s:g} and lease_s {config.lease_s:g}",
            "a lease must leave room for three renewals, so that one lost message does not kill a worker",
            f"set renew_s to {config.lease_s / 3:g} or less",
        )
    if config.poll_min_s > config.poll_max_s:
        raise ConfigError(
            f"poll_min_s is {config.poll_min_s:g} and poll_max_s {config.poll_max_s:g}",
            "the shortest pause cannot exceed the longest",
            "swap them",
        )
    if config.url:
        parse_url(config.url)
    if config.listen_url and not isinstance(parse_url(config.listen_url), PostgresUrl):
        raise ConfigError(
            "listen_url names a SQLite file",
            "it must be a direct connection to the PostgreSQL server of url",
            "leave it out, or name the server past its pooler",
        )
