"""The interactions endpoint at a path of the gateway's own port."""

from __future__ import annotations

from starlette.types import Receive, Scope, Send

from fencerow.web.discord.endpoint import Discord
from fencerow.web.gateway.server import Serves

PATH = "/discord/interactions"


class DiscordBeside:
    """What comes to `PATH` goes to Discord's endpoint, all else to what is served beside it."""

    def __init__(self, served: Serves, discord: Discord) -> None:
        self._served = served
        self._discord = discord

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        ours = scope["type"] == "http" and scope["path"] == PATH
        await (self._discord if ours else self._served)(scope, receive, send)

    def leave(self) -> None:
        """Take no new requests. It may be repeated."""
        self._discord.leave()
        self._served.leave()

    async def aclose(self) -> None:
        """End what is served beside it."""
        await self._served.aclose()
