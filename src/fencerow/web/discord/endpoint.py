"""The endpoint that Discord calls: a verified interaction becomes a job, and is answered within three seconds.

"Deferred" is said after the commit only. When the commit nears the bound, "busy" is said, to that person alone.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from fencerow.app import App
from fencerow.core.app import Call
from fencerow.core.app.calls import checked
from fencerow.core.app.submission import Recipe
from fencerow.core.client.handle import Handle
from fencerow.core.errors import ConfigError, DatabaseError, FencerowError
from fencerow.core.model.seconds import Seconds
from fencerow.db.left_tasks import done_by
from fencerow.web.answers import checked_bound_s
from fencerow.web.discord.interaction import Interaction, InteractionKind, interaction_of
from fencerow.web.discord.signed import SIGNATURE, TIMESTAMP, DiscordKey, verify_interaction
from fencerow.web.errors import NoSuchRoute, TooManyRequests
from fencerow.web.gateway.answering import ALWAYS, refusal_of
from fencerow.web.gateway.chain import Readiness, origin_of
from fencerow.web.reading import headers as read
from fencerow.web.reading.bodies import Bodies
from fencerow.web.reading.body import Gone, body_by_settings
from fencerow.web.reading.room import Room
from fencerow.web.settings import WebSettings

log = logging.getLogger("fencerow.web")

BUSY_S = 2.5  # of the three that Discord gives
PONG, MESSAGE, DEFERRED, DEFERRED_UPDATE, CHOICES = 1, 4, 5, 6, 8
EPHEMERAL = 1 << 6  # for the eyes of who asked
TRANSIENT = (DatabaseError, TooManyRequests)

F = TypeVar("F", bound="Take")
Take = Callable[[Interaction], "Call[Any] | Awaitable[Call[Any]]"]


@dataclass(frozen=True, slots=True)
class Words:
    """What people are told where no job replies to them."""

    busy: str = "I am busy just now. Please try again in a minute."
    again: str = "I am on it already."
    unknown: str = "I do not know this command."
    refused: str = "I cannot do this."


@dataclass(frozen=True, slots=True)
class _Taken:
    take: Take
    ephemeral: bool


class Discord:
    """The interactions endpoint of one application at Discord, as an ASGI application.

    Declare what becomes of commands by `@discord.command(name)`, of buttons and menus by `component`, of forms by
    `modal`: the function is given the `Interaction` and returns a call, made by `job.call(...)`, which is submitted
    under the interaction's id. Mount it where Discord's pages say, or let `fencerow serve --discord` serve it.
    `public_key`: by default the setting `discord_public_key`. `busy_s`: so long after the request began "busy" is said.

    Raises:
        ConfigError: there is no public key, or it is none. MissingExtra: `cryptography` is not installed.
        InvalidInput: `busy_s` cannot be used.
    """

    def __init__(
        self,
        app: App,
        *,
        public_key: str | None = None,
        busy_s: Seconds = BUSY_S,
        words: Words = Words(),
    ) -> None:
        self._settings = WebSettings.of(app.config)
        self._app = app
        self._key = DiscordKey.parsed(_found(public_key or self._settings.discord_public_key))
        self._busy_s = checked_bound_s(busy_s)
        self._words = words
        self._taken: dict[tuple[int, str], _Taken] = {}
        self._bodies = Bodies.of(self._settings)
        seats = self._settings.web_requests_max
        self._room = Room(seats, seats, "interactions")  # all of them come from one caller
        self._standing = Readiness()

    def command(self, name: str, *, ephemeral: bool = False) -> Callable[[F], F]:
        """Decorate what makes the call for a command. `ephemeral`: the reply is for the eyes of who asked."""
        return partial(self._declare, InteractionKind.COMMAND, name, ephemeral)

    def component(self, name: str) -> Callable[[F], F]:
        """The same for a button or a menu: `name` is its `custom_id` up to the first colon. Its message is edited."""
        return partial(self._declare, InteractionKind.COMPONENT, name, False)

    def modal(self, name: str, *, ephemeral: bool = False) -> Callable[[F], F]:
        """The same for a form that was sent; `name` as for `component`."""
        return partial(self._declare, InteractionKind.MODAL, name, ephemeral)

    def _declare(self, kind: InteractionKind, name: str, ephemeral: bool, take: F) -> F:
        if (kind, name) in self._taken:
            raise ConfigError(
                f"{kind.name.lower()} {name!r} is declared twice",
                "one function makes its call",
                "remove one of them",
            )
        self._taken[kind, name] = _Taken(take, ephemeral)
        return take

    def leave(self) -> None:
        """Take no new interactions. It may be repeated."""
        self._standing.leave()

    async def aclose(self) -> None:
        """For who serves it alone. The app stays open."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        until = asyncio.get_running_loop().time() + self._busy_s
        request = Request(scope, receive)
        try:
            told = msgspec.json.encode(await self._answered(request, until))
            response = Response(told, 200, dict(ALWAYS), "application/json")
        except Gone:
            return  # nobody is there to read an answer
        except Exception as error:
            response = refusal_of(error, origin_of(request, self._settings), "discord")
        await response(scope, receive, send)

    async def _answered(self, request: Request, until: float) -> dict[str, Any]:
        """What is said to a request that is Discord's.

        Raises:
            InteractionRefused: it is not. InvalidInput and others: it is no interaction, or cannot be read.
        """
        self._standing.check()
        if request.method != "POST":
            raise _no_method()
        headers = read.HeaderValues.of(request.scope["headers"])
        read.check_headers(request.scope["headers"], self._settings)
        with self._bodies.body() as held:
            body = await body_by_settings(
                request.receive, headers, self._settings, held, within_s=self._busy_s
            )
            verify_interaction(headers.getlist(SIGNATURE), headers.getlist(TIMESTAMP), body, self._key)
            return await self._told(interaction_of(body), until)

    async def _told(self, interaction: Interaction, until: float) -> dict[str, Any]:
        if interaction.type == InteractionKind.PING:
            return {"type": PONG}
        if interaction.type == InteractionKind.AUTOCOMPLETE:
            return {"type": CHOICES, "data": {"choices": []}}
        taken = self._taken.get((interaction.type, interaction.name))
        if taken is None:
            return _whisper(self._words.unknown)
        try:
            storing = await done_by(until, self._store(taken.take, interaction), goes_on=True)
            handle = None if storing is None else storing.result()
        except TRANSIENT as error:
            log.warning("interaction %s was told to come again: %s", interaction.id, error)
            return _whisper(self._words.busy)
        except Exception as error:  # a refusal of the submit, or a fault of the program's own
            log.exception("interaction %s was refused: %s", interaction.id, type(error).__name__)
            return _whisper(self._words.refused)
        if handle is None:
            log.warning(
                "interaction %s was told to come again: its job was not stored in time", interaction.id
            )
            return _whisper(self._words.busy)
        if handle.id != interaction.job_id:
            return _whisper(self._words.again)  # its key has another job, which replies elsewhere
        return _deferred(interaction, taken)

    async def _store(self, take: Take, interaction: Interaction) -> Handle[Any]:
        made = take(interaction)
        call = checked(await made if inspect.isawaitable(made) else made)
        options = replace(call.recipe.options, id=interaction.job_id)
        recipe = Recipe(call.recipe.declaration, options)
        # The seat is its own until the submit has ended, also after "busy": a silent database collects no more of them.
        with self._room.seat("discord"):
            return await self._app.asubmit(msgspec.structs.replace(call, recipe=recipe))


def _deferred(interaction: Interaction, taken: _Taken) -> dict[str, Any]:
    if interaction.type == InteractionKind.COMPONENT:
        return {"type": DEFERRED_UPDATE}
    return {"type": DEFERRED, "data": {"flags": EPHEMERAL}} if taken.ephemeral else {"type": DEFERRED}


def _whisper(words: str) -> dict[str, Any]:
    """A message for the eyes of who asked, in which nobody is called."""
    data = {"content": words, "flags": EPHEMERAL, "allowed_mentions": {"parse": []}}
    return {"type": MESSAGE, "data": data}


def _found(key: str | None) -> str:
    if key:
        return key
    raise ConfigError(
        "the public key of the application at Discord is not set",
        "without it nobody can tell who calls",
        "pass public_key=, or set FENCEROW_DISCORD_PUBLIC_KEY",
    )


def _no_method() -> FencerowError:
    return NoSuchRoute(
        "interactions are sent by POST", "another method was used", "let Discord send them", status=405
    )
