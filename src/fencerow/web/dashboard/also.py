"""What a program shows in its dashboard beside our screens: screens, templates and pictures of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from starlette.responses import Response

from fencerow.web.dashboard.door import Coming, DoorEntry
from fencerow.web.dashboard.roles import Role
from fencerow.web.dashboard.screen import Screen
from fencerow.web.errors import NoSuchRoute


@dataclass(frozen=True, slots=True)
class Also:
    """`package`: its folder `templates` has those of the screens.

    `picture`: the PNG of a name, made in a thread; None: there is none. It stands at `/pictures/NAME` below the path of
    the dashboard.
    """

    package: str
    screens: Sequence[Screen]
    picture: Callable[[str], bytes | None]

    def entries(self) -> tuple[DoorEntry, ...]:
        """Everything that can be asked for, besides its screens."""
        return (DoorEntry("GET", "/pictures/{name:path}", Role.READ, self._answer),)

    async def _answer(self, coming: Coming) -> Response:
        content = await asyncio.to_thread(self.picture, coming.request.path_params["name"])
        if content is None:
            raise NoSuchRoute(
                "there is no such picture", "what it shows is gone, or never was", "load the page again"
            )
        return Response(content, media_type="image/png")
