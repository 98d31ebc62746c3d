"""`fencerow webhooks deliveries`, `attempts`, `redeliver` and `test`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import asdict
from typing import Any, TypeVar

import click
import msgspec

from fencerow.command import output
from fencerow.command.database import working
from fencerow.command.documents import instants
from fencerow.command.layout import Column
from fencerow.command.options import asked, limit_option, usual_options, utc_option
from fencerow.command.times import Times, told_instant
from fencerow.core.client.base import ClientBase
from fencerow.db.errors import exits
from fencerow.db.text import amount
from fencerow.web.webhooks.commands import verbs
from fencerow.web.webhooks.endpoints import secrets_of
from fencerow.web.webhooks.looking import Delivery
from fencerow.web.webhooks.settings import allowed_of
from fencerow.web.webhooks.tried import tried
from fencerow.web.webhooks.verbs import LIMIT, LIMIT_MAX, STATES, Webhooks

F = TypeVar("F", bound=Callable[..., Any])
COLUMNS = (
    Column("endpoint", least=10),
    Column("event"),
    Column("told", least=14),
    Column("job"),
    Column("made", rank=2),
    Column("now", least=10),
    Column("attempts", rank=1),
    Column("last answer", least=12),
)
ATTEMPTS = (Column("attempt"), Column("at"), Column("took"), Column("answer", least=16))


def meant_options(command: F) -> F:
    """Which deliveries are meant."""
    for option in reversed(
        (
            click.argument("endpoint", required=False),
            click.option("--job", metavar="ID", help="Only what tells the end of this job."),
            click.option("--id", "webhook_id", metavar="WEBHOOK-ID", help="Only what has this webhook-id."),
            click.option(
                "--since", metavar="TIME", help="Only what was made then or later: 2026-12-24T18:00Z."
            ),
            click.option("--until", metavar="TIME", help="Only what was made before."),
        )
    ):
        command = option(command)
    return command


@click.command()
@meant_options
@click.option("--state", type=click.Choice(STATES), help="Only those in this state.")
@click.option("--before", type=int, metavar="EVENT", help="Only those of earlier events: the next page.")
@click.option("--behind", metavar="ENDPOINT", help="And those of this event to endpoints behind this one.")
@limit_option(LIMIT, most=LIMIT_MAX)
@utc_option
@usual_options
@click.pass_context
def deliveries(context: click.Context, /, endpoint: str | None, limit: int, **given: Any) -> None:
    """List what endpoints are told, the newest first: how it stands, and the last answer."""
    with verbs(context) as known:
        found = known.deliveries(endpoint, limit=limit, **_meant(given))
    if asked(context).json:
        output.say_json([delivery_document(each) for each in found])
        return
    output.table(
        COLUMNS,
        [_row(each, Times(each.now_us, asked(context).utc)) for each in found],
        none="nothing is told",
    )
    if len(found) == limit:
        output.say_text(f"(there may be more: --before {found[-1].event_id} --behind {found[-1].endpoint})")


@click.command()
@click.argument("endpoint")
@click.argument("event", type=int)
@utc_option
@usual_options
@click.pass_context
def attempts(context: click.Context, endpoint: str, event: int) -> None:
    """Show every attempt of one delivery: the endpoint, and the event as `deliveries` shows it."""
    with verbs(context) as known:
        found = known.attempts(endpoint, event)
        now_us = known.get(endpoint).now_us
    if asked(context).json:
        output.say_json([instants(msgspec.structs.asdict(each).items()) for each in found])
        return
    at = Times(now_us, asked(context).utc)
    rows = [
        (each.number, at.when(each.at_us), f"{each.took_s:.3f} s", each.failure or each.status)
        for each in found
    ]
    output.table(ATTEMPTS, rows, none="nothing was tried")


@click.command()
@meant_options
@click.option(
    "--state", type=click.Choice(["failed", "delivered"]), default="failed", show_default=True, help="Which."
)
@click.option("--dry-run", is_flag=True, help="Only say which they are.")
@usual_options
@click.pass_context
def redeliver(context: click.Context, /, endpoint: str | None, dry_run: bool, **given: Any) -> None:
    """Send deliveries once more, with the same body under the same webhook-id.

    Where the application seals its payloads, name it with -A.
    """
    with verbs(context) as known:
        found = known.redeliver(endpoint, dry_run=dry_run, **_meant(given))
    if asked(context).json:
        output.say_json({"dry_run": dry_run, "redelivered": [delivery_document(each) for each in found]})
        return
    for each in found:
        output.say_text(f"{each.endpoint} {each.event_id} {each.webhook_id} {each.topic} {each.ended_id}")
    would = "would be" if dry_run else "is" if len(found) == 1 else "are"
    output.warn(f"{amount(len(found), 'delivery', 'deliveries')} {would} sent once more")


@click.command()
@click.argument("endpoint")
@usual_options
@click.pass_context
def test(context: click.Context, endpoint: str) -> int:
    """Send a webhook of type webhook.test from here, signed as all others, and say what was answered."""
    with working(asked(context)) as engine:
        found = Webhooks(ClientBase(engine)).get(endpoint)
        secrets = engine.run(secrets_of(endpoint))
    came = asyncio.run(tried(found, secrets, allowed_of(asked(context).config())))
    if asked(context).json:
        output.say_json({"name": endpoint, **asdict(came)})
    elif came.failure is not None:
        output.say(f"{endpoint} did not answer: {came.failure}")
    else:
        output.say(f"{endpoint} answered {came.status} after {came.took_s:.3f} s")
    return exits.OK if came.taken else exits.FAILED


def delivery_document(found: Delivery) -> dict[str, Any]:
    """What programs read of a delivery."""
    columns = msgspec.structs.asdict(found)
    return instants(
        (name, value) for name, value in columns.items() if name not in ("now_us", "attempts_max")
    )


def _meant(given: dict[str, Any]) -> dict[str, Any]:
    """The options that were said, with instants."""
    said = {name: value for name, value in given.items() if value is not None}
    for name in ("since", "until"):
        if name in said:
            said[name] = told_instant(f"--{name}", said[name])
    return said


def _row(found: Delivery, at: Times) -> tuple[object, ...]:
    return (
        found.endpoint,
        found.event_id,
        found.topic,
        found.ended_id,
        at.when(found.created_at_us),
        found.state,
        found.attempts,
        found.failure or found.status,
    )
