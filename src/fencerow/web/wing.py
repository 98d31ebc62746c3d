"""The front door, as the core is told of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fencerow.core.wing import ChangeByHand, Check, Wing

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import click

    from fencerow.core.config import CoreConfig, Settings
    from fencerow.core.telemetry import Telemetry
    from fencerow.core.wing import Purge
    from fencerow.db.engine import Engine
    from fencerow.db.run import Param, Rows

TOKENS_KEPT_S = 30 * 86_400.0  # since they were over
PURGE_ROWS = 1000


def _purges(engine: Engine, config: CoreConfig, _telemetry: Telemetry) -> Sequence[Purge]:
    from functools import partial

    from fencerow.db.removal import removed
    from fencerow.web.tokens.operations import forget
    from fencerow.web.webhooks.keeping import purges
    from fencerow.web.worked.attempts import worked_purges

    tokens = partial(removed, engine, forget(age_s=TOKENS_KEPT_S, limit=PURGE_ROWS), limit=PURGE_ROWS)
    return (tokens, *purges(engine, config), *worked_purges(engine))


def _checks() -> Sequence[Check]:
    from fencerow.web.tokens.checks import examine_tokens
    from fencerow.web.webhooks.checks import examine_webhooks
    from fencerow.web.worked.checks import examine_worked

    return (
        Check("API tokens", examine_tokens),
        Check("webhooks", examine_webhooks),
        Check("jobs worked over HTTP", examine_worked),
    )


def _commands() -> Sequence[click.Command]:
    from fencerow.web.inbound.commands import in_
    from fencerow.web.maintenance.commands import maintenance
    from fencerow.web.tokens.commands import tokens
    from fencerow.web.webhooks.commands import webhooks
    from fencerow.web.webhooks.delivery_commands import attempts, deliveries, redeliver, test

    for each in (deliveries, attempts, redeliver, test, in_):
        webhooks.add_command(each)
    return (tokens, webhooks, maintenance)


def _settings() -> type[Settings]:
    from fencerow.web.settings import WebSettings

    return WebSettings


def _redelivered(params: Mapping[str, Param], rows: Rows) -> Sequence[str]:
    import msgspec

    again = {each["job_id"]: each for each in msgspec.json.decode(str(params["again"]))}
    made = [again[str(row[0])] for row in rows]
    return [f"{each['endpoint']}/{each['event_id']}" for each in made]


def _all(_params: Mapping[str, Param], _rows: Rows) -> Sequence[str]:
    return ["all"]


CHANGES = (
    ChangeByHand("create_token", "API token", "made", "name", shown=("id", "scopes", "queues", "expires_s")),
    ChangeByHand("revoke_token", "API token", "revoked", "id", shown=()),
    ChangeByHand(
        "add_endpoint", "webhook endpoint", "made", "name", shown=("url", "events", "queues", "jobs", "tags")
    ),
    ChangeByHand(
        "change_endpoint",
        "webhook endpoint",
        "changed",
        "name",
        shown=("url", "events", "queues", "jobs", "tags"),
    ),
    ChangeByHand("rotate_endpoint", "webhook endpoint", "given a new secret", "name", shown=("overlap_s",)),
    ChangeByHand("retire_endpoint_secret", "webhook endpoint", "old secret retired", "name", shown=()),
    ChangeByHand("enable_endpoint", "webhook endpoint", "enabled", "name", shown=()),
    ChangeByHand("disable_endpoint", "webhook endpoint", "disabled", "name"),
    ChangeByHand("remove_endpoint", "webhook endpoint", "removed", "name", shown=()),
    ChangeByHand("begin_maintenance", "gateways", "closed", targets=_all, shown=("reason", "retry_after_s")),
    ChangeByHand("end_maintenance", "gateways", "opened again", targets=_all, shown=()),
    ChangeByHand("redeliver", "webhook", "delivered again", targets=_redelivered, shown=()),
)
WING = Wing(
    "web",
    queries=(
        "fencerow.web.tokens",
        "fencerow.web.webhooks",
        "fencerow.web.worked",
        "fencerow.web.tallies",
        "fencerow.web.maintenance",
        "fencerow.web.dashboard.bulk",
        "fencerow.web.dashboard.counting",
    ),
    purges=_purges,
    used="web_used",
    checks=_checks,
    changes=CHANGES,
    commands=_commands,
    settings=_settings,
)
