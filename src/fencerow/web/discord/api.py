"""What a job says to Discord: its reply is edited, and "is typing" is shown. What failed says when to try it again.

It follows no redirects and asks no proxy of the environment. No error shows the token of an interaction.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from typing import Any, Final
from weakref import WeakKeyDictionary

from fencerow.core.errors import InvalidInput, MissingExtra
from fencerow.core.model.seconds import Seconds, in_seconds
from fencerow.version import __version__
from fencerow.web.discord.interaction import TOKEN_LASTS_S, ReplyTo
from fencerow.web.errors import DiscordRefused

API: Final = "https://discord.com/api/v10"
CONTENT_MAX: Final = 2000  # characters of a message
TIMEOUT_S: Final = 10.0
# The reply is there when Discord has our answer to the interaction, and a job may be quicker than that.
SETTLES_S: Final = 10.0
AGAIN_S: Final = 1.0
OVER: Final = frozenset({401, 403, 404})
PASSING: Final = frozenset({408, 425})


class DiscordApi:
    """Discord's API for jobs. `bot_token` is needed for `typing` only. For event loops; each has its connections.

    Raises:
        MissingExtra: httpx2 is not installed.
    """

    def __init__(
        self,
        *,
        bot_token: str | None = None,
        url: str = API,
        timeout_s: Seconds = TIMEOUT_S,
        clock: Callable[[], float] = time.time,
    ) -> None:
        try:
            import httpx2
        except ImportError:
            raise MissingExtra(
                "Discord cannot be called",
                "the library httpx2 is not installed",
                'pip install "fencerow[discord]"',
            ) from None
        self._httpx = httpx2
        self._bot_token = bot_token
        self._url = url.rstrip("/")
        self._timeout_s = in_seconds(timeout_s)
        self._clock = clock
        self._of_loops: WeakKeyDictionary[asyncio.AbstractEventLoop, httpx2.AsyncClient] = WeakKeyDictionary()

    async def edit(self, to: ReplyTo, content: str, **more: Any) -> None:
        """Edit the reply of an interaction. It may be repeated: the last edit counts.

        `more`: further fields of the message, such as `embeds`. Nobody is called in it unless `allowed_mentions` says.

        Raises:
            InvalidInput: the text is empty or has more than 2,000 characters.
            DiscordRefused: it was not edited. A job that raises it is retried as Discord asks, and not at all when the
                15 minutes of the token are over.
        """
        if not 0 < len(content) <= CONTENT_MAX:
            raise InvalidInput(
                f"the message has {len(content)} characters",
                f"Discord takes 1 to {CONTENT_MAX}",
                "send it in parts, or shortened",
            )
        age_s = self._clock() - to.made_s
        if age_s > TOKEN_LASTS_S:
            raise _refused(
                0, "the 15 minutes in which an interaction can be replied to are over", retryable=False
            )
        path = f"/webhooks/{to.application_id}/{to.token}/messages/@original"
        message = {"content": content, "allowed_mentions": {"parse": []}, **more}
        await self._ask("PATCH", path, message, {}, is_young=age_s < SETTLES_S)

    async def typing(self, channel_id: str) -> None:
        """Show "is typing" in a channel, for ten seconds.

        Raises:
            InvalidInput: there is no token of a bot, or this is no channel's id.
            DiscordRefused: it was not shown; mostly that is to be passed over.
        """
        if not self._bot_token or not channel_id.isdecimal():
            raise InvalidInput(
                "typing cannot be shown", "a bot_token and the id of a channel are needed", "give both"
            )
        await self._ask(
            "POST", f"/channels/{channel_id}/typing", None, {"authorization": f"Bot {self._bot_token}"}
        )

    async def aclose(self) -> None:
        """Close the connections of this event loop."""
        client = self._of_loops.pop(asyncio.get_running_loop(), None)
        if client is not None:
            await client.aclose()

    async def _ask(
        self,
        method: str,
        path: str,
        document: Mapping[str, Any] | None,
        headers: Mapping[str, str],
        *,
        is_young: bool = False,
    ) -> None:
        try:
            async with asyncio.timeout(self._timeout_s):
                reply = await self._client().request(
                    method, self._url + path, json=document, headers=dict(headers)
                )
        except (TimeoutError, self._httpx.HTTPError) as error:
            failed = type(error).__name__
        else:
            if reply.is_success:
                return
            raise _of(reply.status_code, _json(reply), reply.headers, is_young=is_young)
        raise _refused(
            0, f"it did not answer: {failed}", retryable=True
        )  # outside: the cause has the token's URL

    def _client(self) -> Any:
        loop = asyncio.get_running_loop()
        found = self._of_loops.get(loop)
        if found is None:
            agent = f"DiscordBot (https://fencerow.dev, {__version__})"
            found = self._of_loops[loop] = self._httpx.AsyncClient(
                headers={"user-agent": agent},
                follow_redirects=False,
                trust_env=False,
                timeout=self._timeout_s,
            )
        return found


def _of(
    status: int, told: Mapping[str, Any], headers: Mapping[str, str], *, is_young: bool
) -> DiscordRefused:
    """What an answer that is no success means for a retry."""
    code = told.get("code")
    why = f"it answered {status}" + (f", code {code}" if isinstance(code, int) else "")
    if status == 429:
        return _refused(status, why, retryable=True, retry_after=_wait_s(told, headers))
    if status in OVER and is_young:
        return _refused(status, why, retryable=True, retry_after=AGAIN_S)
    return _refused(status, why, retryable=status >= 500 or status in PASSING)


def _wait_s(told: Mapping[str, Any], headers: Mapping[str, str]) -> float:
    for each in (told.get("retry_after"), headers.get("retry-after")):
        try:
            wait_s = float(each)  # type: ignore[arg-type]
        except (TypeError, ValueError):
            continue
        if 0 <= wait_s < float("inf"):
            return wait_s
    return AGAIN_S


def _json(reply: Any) -> Mapping[str, Any]:
    try:
        found = reply.json()
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _refused(status: int, why: str, *, retryable: bool, retry_after: float | None = None) -> DiscordRefused:
    return DiscordRefused(
        "Discord did not take it",
        why,
        "it is tried again" if retryable else "it would be refused again",
        status_code=status,
        retryable=retryable,
        retry_after=retry_after,
    )
