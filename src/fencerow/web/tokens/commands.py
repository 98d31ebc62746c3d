"""`fencerow tokens`: create, list, revoke."""

from __future__ import annotations

import re
from typing import Final

import click

from fencerow.command import output
from fencerow.command.completing import queue_names
from fencerow.command.database import acting, working
from fencerow.command.documents import plain
from fencerow.command.groups import group_of
from fencerow.command.layout import Column
from fencerow.command.options import asked, usual_options, utc_option
from fencerow.command.times import Times
from fencerow.core.client.base import ClientBase
from fencerow.core.errors import InvalidInput
from fencerow.core.model.defaults import DAY_S
from fencerow.db.errors import exits
from fencerow.web.tokens.client import TokenVerbs
from fencerow.web.tokens.record import TokenRecord
from fencerow.web.tokens.scope import Scope
from fencerow.web.tokens.wanted import EXPIRES_S

LENGTH: Final = re.compile(r"(\d{1,9})\s*(d|h|min|s)", re.ASCII)
UNITS_S: Final = {"d": DAY_S, "h": 3600.0, "min": 60.0, "s": 1.0}
COLUMNS: Final = (
    Column("id"),
    Column("name", least=10),
    Column("scopes", least=12, folds=True),
    Column("queues", least=10, folds=True, rank=2),
    Column("state"),
    Column("expires", rank=1),
    Column("last used", rank=1),
    Column("made", rank=3),
)


@click.command("list")
@utc_option
@usual_options
@click.pass_context
def list_(context: click.Context) -> None:
    """List API tokens: what each may do, until when, and when it was used last. No token itself can be shown."""
    with working(asked(context)) as engine:
        found = TokenVerbs(ClientBase(engine)).known()
    if asked(context).json:
        output.say_json([_document(each) for each in found])
        return
    output.table(COLUMNS, [_row(each, asked(context).utc) for each in found], none="there is no API token")


tokens = group_of(list_, "tokens", "Create, list and revoke API tokens. Without a verb: list.")


@tokens.command()
@click.argument("name")
@click.option(
    "--scope",
    "scopes",
    type=click.Choice([str(each) for each in Scope]),
    multiple=True,
    required=True,
    help="What it may do; give several. operate includes signal, read and cancel; admin includes everything.",
)
@click.option(
    "--queue", "queues", metavar="QUEUE", multiple=True, shell_complete=queue_names,
    help="Only in this queue; give several. Default: in all, and what belongs to none.",
)  # fmt: skip
@click.option("--expires", metavar="TIME", help="When it expires: 30d, 12h, 90min.  [default: 90d]")
@click.option("--never-expires", is_flag=True, help="It lets its bearer pass until it is revoked.")
@usual_options
@click.pass_context
def create(
    context: click.Context,
    name: str,
    scopes: tuple[str, ...],
    queues: tuple[str, ...],
    expires: str | None,
    never_expires: bool,
) -> int:
    """Make an API token for NAME and print it, this once. The token alone is on the standard output.

    Several may live under one name: make the next, give it out, then revoke the one before."""
    expires_s = _expiry(expires, never=never_expires)
    with working(asked(context)) as engine:
        verbs = TokenVerbs(acting(engine, asked(context)))
        made = verbs.create(name, scopes=scopes, queues=queues or None, expires_s=expires_s)
    if asked(context).json:
        output.say_json({"token": made.token, **_document(made.record)})
        return exits.OK
    record = made.record
    until = Times(record.now_us, asked(context).utc).full(record.expires_at_us)
    output.warn(
        f"{record.name}: {', '.join(record.scopes)} {_reach(record)}; it "
        + (f"expires {until}" if until else "never expires")
    )
    output.warn(f"id {record.id}, by which it is revoked. The token is shown this once:")
    output.say(made.token)
    return exits.OK


@tokens.command()
@click.argument("token_id", metavar="ID")
@usual_options
@click.pass_context
def revoke(context: click.Context, token_id: str) -> int:
    """Let nobody pass with an API token any more. A gateway believes what it has just read for a few seconds."""
    with working(asked(context)) as engine:
        verbs = TokenVerbs(acting(engine, asked(context)))
        revoked = verbs.revoke(token_id)
    if asked(context).json:
        output.say_json(_document(revoked))
    else:
        output.say(f"{revoked.name} ({revoked.id}) is revoked")
    return exits.OK


def _expiry(said: str | None, *, never: bool) -> float | None:
    if never and said is not None:
        raise InvalidInput(
            "--expires and --never-expires were given", "they contradict each other", "leave one out"
        )
    if never or said is None:
        return None if never else EXPIRES_S
    found = LENGTH.fullmatch(said.strip())
    if found is None:
        raise InvalidInput(
            f"--expires is {ascii(said)[:40]}",
            "a number with its unit is expected",
            "for example 30d, 12h or 90min",
        )
    return int(found[1]) * UNITS_S[found[2]]


def _row(token: TokenRecord, utc: bool) -> tuple[object, ...]:
    at = Times(token.now_us, utc)
    return (
        token.id,
        token.name,
        ", ".join(token.scopes),
        "all" if token.queues is None else ", ".join(token.queues),
        str(token.state),
        at.when(token.expires_at_us) or "never",
        at.when(token.last_used_at_us) or "never",
        at.when(token.created_at_us),
    )


def _reach(token: TokenRecord) -> str:
    return "in all queues" if token.queues is None else f"in {', '.join(token.queues)}"


def _document(token: TokenRecord) -> dict[str, object]:
    document: dict[str, object] = plain(token)
    return {**document, "state": str(token.state)}
