"""`fencerow relay`: list, parts, pause, resume, move, unread, discard, remove."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import click

from fencerow.command import output
from fencerow.command.database import acting, working
from fencerow.command.documents import plain
from fencerow.command.groups import group_of
from fencerow.command.layout import Column
from fencerow.command.options import asked, limit_option, usual_options, utc_option
from fencerow.command.times import Times
from fencerow.core.errors import InvalidInput
from fencerow.db.errors import exits
from fencerow.db.text import amount
from fencerow.relay.relays import Kept, Part, Relay
from fencerow.relay.verbs import Relays

RELAYS = (
    Column("relay", least=10),
    Column("way"),
    Column("broker", least=20, folds=True, lines=2),
    Column("now", least=12, folds=True, lines=3),
    Column("behind"),
    Column("workers", rank=1),
    Column("unread", rank=2),
    Column("gone", rank=3),
)
PARTS = (
    Column("part"),
    Column("position", least=16),
    Column("behind"),
    Column("taken"),
    Column("unread", rank=1),
    Column("gone", rank=2),
    Column("read by", rank=3),
    Column("moved", rank=1),
    Column("stopped", least=12, folds=True, lines=3),
)
UNREAD = (
    Column("number"),
    Column("relay", rank=1),
    Column("part", rank=2),
    Column("position", least=12),
    Column("bytes", rank=3),
    Column("at"),
    Column("error", least=20, folds=True, lines=3),
)


@contextmanager
def verbs(context: click.Context) -> Iterator[Relays]:
    """The verbs on the database that is meant, in the name of who calls."""
    with working(asked(context)) as engine:
        yield Relays(acting(engine, asked(context)))


@click.command("list")
@utc_option
@usual_options
@click.pass_context
def list_(context: click.Context) -> None:
    """List relays: where each leads, whether it goes on, and how far it is behind."""
    with verbs(context) as known:
        found = known.known()
    if asked(context).json:
        output.say_json([plain(each) for each in found])
        return
    output.table(
        RELAYS,
        [_relay(each, Times(each.now_us, asked(context).utc)) for each in found],
        none="no relay was ever run here",
    )


relay = group_of(
    list_, "relay", "List, pause and move relays to and from Redis and Kafka. Without a verb: list."
)


@relay.command()
@click.argument("name")
@utc_option
@usual_options
@click.pass_context
def parts(context: click.Context, name: str) -> None:
    """Show the parts of a relay that takes: where each stands, and who reads it."""
    with verbs(context) as known:
        found = known.parts(name)
    if asked(context).json:
        output.say_json([{**plain(each), "position": _position(each)} for each in found])
        return
    output.table(
        PARTS,
        [_part(each, Times(each.now_us, asked(context).utc)) for each in found],
        none="it has no part yet; one that sends has its place in the log: `fencerow events lag`",
    )


@relay.command()
@click.argument("name")
@click.option("--reason", help="Why, for those who look.")
@usual_options
@click.pass_context
def pause(context: click.Context, name: str, reason: str | None) -> int:
    """Let a relay rest. Nothing is lost meanwhile, as long as events and messages are kept."""
    with verbs(context) as known:
        done = known.pause(name, reason=reason)
    _say(context, {"relay": name, "paused": done}, f"{name} rests" if done else f"{name} rests already")
    return exits.OK


@relay.command()
@click.argument("name")
@usual_options
@click.pass_context
def resume(context: click.Context, name: str) -> int:
    """Let a relay that rests go on."""
    with verbs(context) as known:
        done = known.resume(name)
    _say(context, {"relay": name, "resumed": done}, f"{name} goes on" if done else f"{name} does not rest")
    return exits.OK


@relay.command()
@click.argument("name")
@click.argument("part", type=click.IntRange(0))
@click.argument("position")
@click.option("--again", is_flag=True, help="Make jobs again that messages behind it have made before.")
@usual_options
@click.pass_context
def move(context: click.Context, name: str, part: int, position: str, again: bool) -> int:
    """Let a part of a relay that takes go on at a position, also one that has stopped.

    POSITION: beginning, end, the offset of the next message (Kafka), or the id of the last entry that counts as read
    (Redis).
    """
    with verbs(context) as known:
        known.move(name, part, position, again=again)
    _say(context, {"relay": name, "part": part, "position": position}, f"{name} goes on at {position}")
    return exits.OK


@relay.command()
@click.argument("name", required=False)
@limit_option(50, most=1000)
@utc_option
@usual_options
@click.pass_context
def unread(context: click.Context, name: str | None, limit: int) -> None:
    """List messages that could not be read, the latest first, and why."""
    with verbs(context) as known:
        found = known.unread(name, limit=limit)
    if asked(context).json:
        output.say_json([_kept_document(each) for each in found])
        return
    output.table(
        UNREAD,
        [_kept(each, Times(each.now_us, asked(context).utc)) for each in found],
        none="every message could be read",
    )


@relay.command()
@click.argument("name")
@click.argument("numbers", metavar="[NUMBER]...", nargs=-1, type=int)
@click.option("--all", "everything", is_flag=True, help="All of the relay.")
@usual_options
@click.pass_context
def discard(context: click.Context, name: str, numbers: Sequence[int], everything: bool) -> int:
    """Forget messages that could not be read: those of these numbers, or --all."""
    if bool(numbers) == everything:
        raise InvalidInput(
            "say which messages are meant",
            "either their numbers or --all is expected",
            f"`fencerow relay unread {name}` lists them",
        )
    with verbs(context) as known:
        count = known.discard(name, None if everything else list(numbers))
    _say(context, {"relay": name, "discarded": count}, f"{amount(count, 'message')} of {name}: forgotten")
    return exits.OK if count else exits.FAILED


@relay.command()
@click.argument("name")
@usual_options
@click.pass_context
def remove(context: click.Context, name: str) -> int:
    """Forget a relay that nobody runs any more, with its positions. Of one that sends also remove the group."""
    with verbs(context) as known:
        known.remove(name)
    _say(context, {"relay": name, "removed": True}, f"{name} is forgotten")
    return exits.OK


def _say(context: click.Context, document: dict[str, object], text: str) -> None:
    if asked(context).json:
        output.say_json(document)
    else:
        output.say(text)


def _relay(each: Relay, at: Times) -> tuple[object, ...]:
    return (
        each.name,
        each.direction,
        each.place,
        _now(each, at),
        each.lag,
        each.readers or None,
        each.unread or None,
        each.gone or None,
    )


def _now(each: Relay, at: Times) -> str:
    if each.paused_at_us is not None:
        said = f"rests since {at.when(each.paused_at_us)}"
        return said if each.reason is None else f"{said}: {each.reason}"
    if each.stopped is not None:
        return f"stopped: {each.stopped}"
    if each.trouble is not None:
        return f"waits: {each.trouble}"
    return "runs" if each.readers else "nobody runs it"


def _part(each: Part, at: Times) -> tuple[object, ...]:
    return (
        each.part,
        _position(each),
        each.lag,
        each.taken,
        each.unread or None,
        each.gone or None,
        each.reader,
        at.when(each.moved_at_us),
        each.stopped,
    )


def _position(each: Part) -> str:
    named = {"": "not begun", "<": "beginning", ">": "end"}
    return named.get(each.position, each.position.partition("#")[0])


def _kept(each: Kept, at: Times) -> tuple[object, ...]:
    return (each.id, each.relay, each.part, each.position, each.bytes, at.when(each.at_us), each.error)


def _kept_document(each: Kept) -> dict[str, object]:
    return {**plain(each), "raw": each.raw.decode("utf-8", "replace")}
