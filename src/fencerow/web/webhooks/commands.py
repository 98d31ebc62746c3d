"""`fencerow webhooks`: endpoints listed, shown, made and changed. What was told them: `delivery_commands`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar, cast

import click

from fencerow.command import output
from fencerow.command.app_loading import load_app
from fencerow.command.database import acting, working
from fencerow.command.documents import instants
from fencerow.command.groups import group_of
from fencerow.command.layout import Column
from fencerow.command.options import asked, usual_options, utc_option
from fencerow.command.times import Times
from fencerow.db.text import amount
from fencerow.web.webhooks.endpoint import ENDINGS, ORDERS, OVERLAP_S, Endpoint, EndpointOptions
from fencerow.web.webhooks.settings import allowed_of
from fencerow.web.webhooks.verbs import Webhooks

F = TypeVar("F", bound=Callable[..., Any])
ANY = "any"
COLUMNS = (
    Column("endpoint", least=10),
    Column("url", least=20, folds=True, lines=2),
    Column("told of", least=16, folds=True, lines=3),
    Column("now", least=12, folds=True, lines=3),
    Column("changed", rank=1),
)


@contextmanager
def verbs(context: click.Context) -> Iterator[Webhooks]:
    """The verbs on the database that is meant, in the name of who calls."""
    config = asked(context).config()
    with working(asked(context)) as engine:
        client = acting(engine, asked(context))
        if (app := asked(context).app_name()) is not None:
            client.packing = load_app(app).client.packing  # as its workers read what a redelivery submits
        yield Webhooks(client, allowed_of(config))


def endpoint_options(command: F) -> F:
    """What can be said of an endpoint."""
    for option in reversed(
        (
            click.option(
                "--event",
                "events",
                multiple=True,
                type=click.Choice(ENDINGS),
                help="An end to tell; may be repeated. By default all.",
            ),
            click.option(
                "--queue",
                "queues",
                multiple=True,
                metavar="NAME",
                help="Only jobs of this queue; may be repeated.",
            ),
            click.option(
                "--job",
                "jobs",
                multiple=True,
                metavar="NAME",
                help="Only jobs of this name; may be repeated.",
            ),
            click.option(
                "--tag",
                "tags",
                multiple=True,
                metavar="TAG",
                help="Only jobs with this tag, or another one that is said.",
            ),
            click.option("--result/--no-result", "with_result", default=None, help="Tell small results too."),
            click.option(
                "--order",
                "in_order",
                type=click.Choice(ORDERS),
                help="Keep the order of each exclusive key, or of all.",
            ),
            click.option(
                "--timeout",
                "timeout_s",
                type=float,
                metavar="SECONDS",
                help="For one attempt, 1 to 300; by default 15.",
            ),
            click.option(
                "--attempts",
                "attempts_max",
                type=int,
                metavar="N",
                help="How often it is tried; by default 12, over five days.",
            ),
        )
    ):
        command = option(command)
    return command


@click.command("list")
@utc_option
@usual_options
@click.pass_context
def list_(context: click.Context) -> None:
    """List endpoints: where they are, what they are told, and whether they take it."""
    with verbs(context) as known:
        found = known.known()
    if asked(context).json:
        output.say_json([endpoint_document(each) for each in found])
        return
    output.table(
        COLUMNS,
        [_row(each, Times(each.now_us, asked(context).utc)) for each in found],
        none="there is no endpoint",
    )


webhooks = group_of(
    list_,
    "webhooks",
    "List, make and change the endpoints that are told of the ends of jobs over HTTP. Without a verb: list.",
)


@webhooks.command()
@click.argument("name")
@utc_option
@usual_options
@click.pass_context
def show(context: click.Context, name: str) -> None:
    """Show an endpoint: what it is told, its state and its circuit."""
    with verbs(context) as known:
        found = known.get(name)
    if asked(context).json:
        output.say_json(endpoint_document(found))
        return
    at = Times(found.now_us, asked(context).utc)
    output.facts(
        {
            "endpoint": found.name,
            "id": found.id,
            "url": found.url,
            "told of": _told_of(found),
            "results": "small ones are told too" if found.with_result else None,
            "order": None if found.in_order == "none" else f"one after the other, by {found.in_order}",
            "timeout": f"{found.timeout_s:g} s",
            "attempts": found.attempts_max,
            "now": _now(found, at),
            "old secret": None
            if found.old_until_us is None
            else f"signs until {at.full(found.old_until_us)}",
            "version": found.version,
            "made": at.full(found.created_at_us),
            "changed": f"{at.full(found.changed_at_us)} by {found.changed_by}",
        }
    )


@webhooks.command()
@click.argument("name")
@click.argument("target", metavar="URL")
@endpoint_options
@click.option("--asymmetric", is_flag=True, help="Sign with a key pair, and print its public key.")
@usual_options
@click.pass_context
def add(context: click.Context, /, name: str, target: str, asymmetric: bool, **given: Any) -> None:
    """Make an endpoint, and print the secret that its receiver needs, this once."""
    with verbs(context) as known:
        added = known.add(name, target, asymmetric=asymmetric, **_given(given))
    if asked(context).json:
        output.say_json({**endpoint_document(added.endpoint), "secret": added.secret})
        return
    output.say(added.secret)
    output.warn(f"the endpoint {name} is made; the line above is its secret")


@webhooks.command()
@click.argument("name")
@click.option("--to", "target", metavar="URL", help="Where it is from now on.")
@endpoint_options
@usual_options
@click.pass_context
def change(context: click.Context, /, name: str, target: str | None, **given: Any) -> None:
    """Change an endpoint. What is not said stays; `any` takes a filter away: --queue any."""
    with verbs(context) as known:
        found = known.change(name, url=target, **_given(given))
    if asked(context).json:
        output.say_json(endpoint_document(found))
    else:
        output.say_text(f"{name}: {found.url}, told of {_told_of(found)}")


@webhooks.command()
@click.argument("name")
@click.option(
    "--overlap",
    type=float,
    default=OVERLAP_S,
    show_default=True,
    metavar="SECONDS",
    help="So long both sign.",
)
@click.option(
    "--asymmetric/--symmetric",
    default=None,
    help="With a key pair, or a shared secret; by default as before.",
)
@click.option("--retire", is_flag=True, help="Make none: let the old one sign no more.")
@usual_options
@click.pass_context
def rotate(context: click.Context, name: str, overlap: float, asymmetric: bool | None, retire: bool) -> None:
    """Give an endpoint a new secret and print it, this once. For a while the old one signs beside it."""
    with verbs(context) as known:
        secret = None if retire else known.rotate(name, overlap_s=overlap, asymmetric=asymmetric)
        retired = known.retire(name) if retire else False
    if asked(context).json:
        output.say_json({"name": name, "secret": secret, "retired": retired})
    elif secret is not None:
        output.say(secret)
    else:
        output.say(f"the old secret of {name} {'signs no more' if retired else 'did not sign'}")


@webhooks.command()
@click.argument("name")
@usual_options
@click.pass_context
def secret(context: click.Context, name: str) -> None:
    """Print the secrets of an endpoint, the current one first; of a key pair the public key."""
    with verbs(context) as known:
        found = known.secrets(name)
    if asked(context).json:
        output.say_json({"name": name, "secrets": found})
        return
    for each in found:
        output.say(each)


@webhooks.command()
@click.argument("name")
@usual_options
@click.pass_context
def enable(context: click.Context, name: str) -> None:
    """Tell an endpoint again of ends, from now on; one that answered 410 too."""
    with verbs(context) as known:
        changed = known.enable(name)
    _say_change(context, name, "enabled", changed)


@webhooks.command()
@click.argument("name")
@click.option("--reason", metavar="TEXT", help="Why; shown by `webhooks list`.")
@usual_options
@click.pass_context
def disable(context: click.Context, name: str, reason: str | None) -> None:
    """Tell an endpoint nothing more until it is enabled. Its deliveries under way fail, and can be redelivered."""
    with verbs(context) as known:
        changed = known.disable(name, reason=reason)
    _say_change(context, name, "disabled", changed)


@webhooks.command()
@click.argument("name")
@usual_options
@click.pass_context
def remove(context: click.Context, name: str) -> None:
    """Forget an endpoint, its secrets and its deliveries."""
    with verbs(context) as known:
        known.remove(name)
    _say_change(context, name, "removed", True)


def endpoint_document(found: Endpoint) -> dict[str, Any]:
    """What programs read of an endpoint."""
    columns = {each: getattr(found, each) for each in found.__struct_fields__ if each != "now_us"}
    return instants(columns.items())


def _given(said: dict[str, Any]) -> EndpointOptions:
    """The options that were said. `any` is a filter that lets all through."""
    given: dict[str, Any] = {}
    for name, value in said.items():
        if value is None or value == ():
            continue
        given[name] = () if isinstance(value, tuple) and ANY in value else value
    return cast(EndpointOptions, given)


def _say_change(context: click.Context, name: str, what: str, changed: bool) -> None:
    if asked(context).json:
        output.say_json({"name": name, "state": what, "changed": changed})
    else:
        output.say_text(f"{name} is {what}" if changed else f"{name} was {what} already")


def _row(found: Endpoint, at: Times) -> tuple[object, ...]:
    return found.name, found.url, _told_of(found), _now(found, at), at.when(found.changed_at_us)


def _told_of(found: Endpoint) -> str:
    ends = "all ends" if found.events == ENDINGS else ", ".join(found.events)
    filters = {"queue": found.queues, "job": found.jobs, "tag": found.tags}
    said = [f"{what} {' or '.join(names)}" for what, names in filters.items() if names]
    return f"{ends} of {', '.join(said)}" if said else ends


def _now(found: Endpoint, at: Times) -> str:
    if found.damaged:
        return f"told nothing: {', '.join(found.damaged)} cannot be read"
    if found.state != "enabled":
        return f"{found.state}: {found.reason}" if found.reason else found.state
    if found.open_until_us is not None:
        return f"left alone after {amount(found.failures, 'failure')}, tried again {at.when(found.open_until_us)}"
    return "enabled" if not found.failures else f"enabled, {amount(found.failures, 'failure')} in a row"
