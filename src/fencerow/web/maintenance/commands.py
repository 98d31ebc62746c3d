"""`fencerow maintenance`: show, on, off."""

from __future__ import annotations

import click

from fencerow.command import output
from fencerow.command.database import acting, working
from fencerow.command.documents import plain
from fencerow.command.groups import group_of
from fencerow.command.options import asked, usual_options, utc_option
from fencerow.command.times import Times
from fencerow.core.client.base import ClientBase
from fencerow.db.errors import exits
from fencerow.web.maintenance.client import RETRY_AFTER_S, RETRY_AFTER_S_MAX, MaintenanceVerbs
from fencerow.web.maintenance.operations import Maintenance


@click.command("show")
@utc_option
@usual_options
@click.pass_context
def show(context: click.Context) -> None:
    """Show whether the gateways are under maintenance: since when, by whom and why."""
    with working(asked(context)) as engine:
        found = MaintenanceVerbs(ClientBase(engine)).get()
    if asked(context).json:
        output.say_json(_document(found))
    elif found is None:
        output.say("the gateways take requests")
    else:
        output.say(_told(found, Times(found.now_us, asked(context).utc)))


maintenance = group_of(
    show, "maintenance", "Let the gateways take no requests for a while. Without a verb: show."
)


@maintenance.command()
@click.option("--reason", metavar="TEXT", help="Why; shown by `maintenance show`, to nobody without a token.")
@click.option(
    "--retry-after", "retry_after_s", metavar="SECONDS", type=click.IntRange(1, RETRY_AFTER_S_MAX),
    default=RETRY_AFTER_S, show_default=True, help="When callers are told to come again.",
)  # fmt: skip
@usual_options
@click.pass_context
def on(context: click.Context, reason: str | None, retry_after_s: int) -> int:
    """Let all gateways answer 503 to all but health, within two seconds. Workers and submits by the library go on."""
    with working(asked(context)) as engine:
        verbs = MaintenanceVerbs(acting(engine, asked(context)))
        changed = verbs.begin(reason=reason, retry_after_s=retry_after_s)
    said = "the gateways are under maintenance"
    _say(context, True, changed, said if changed else f"{said} already; the first reason is kept")
    return exits.OK


@maintenance.command()
@usual_options
@click.pass_context
def off(context: click.Context) -> int:
    """Let all gateways take requests again, within two seconds."""
    with working(asked(context)) as engine:
        changed = MaintenanceVerbs(acting(engine, asked(context))).end()
    _say(context, False, changed, f"the gateways take requests{' again' if changed else ' already'}")
    return exits.OK


def _document(found: Maintenance | None) -> dict[str, object]:
    """For programs."""
    if found is None:
        return {"on": False, "since": None, "set_by": None, "reason": None, "retry_after_s": None}
    fields: dict[str, object] = plain(found)
    return {"on": True, **{name: value for name, value in fields.items() if name != "now"}}


def _say(context: click.Context, is_on: bool, changed: bool, said: str) -> None:
    if asked(context).json:
        output.say_json({"on": is_on, "changed": changed})
    else:
        output.say(said)


def _told(found: Maintenance, at: Times) -> str:
    by = f" by {found.set_by}" if found.set_by else ""
    why = f": {found.reason}" if found.reason else ""
    return f"under maintenance, {at.full(found.since_us)}{by}{why}"
