"""Whom a token lets pass, as a gateway asks for each request: from what it knows, or else from the database.

However many ask, one question at a time is under way, for many tokens together: a flood of wrong ones costs the
database no more than that. Those of which this process has known that they are right are asked for first.
"""

from __future__ import annotations

import asyncio
import copy
import logging
import time
from collections.abc import Callable, Sequence
from typing import Final

from fencerow.core.client.base import ClientBase
from fencerow.core.errors import Busy, FencerowError, Unavailable
from fencerow.db.run import ask
from fencerow.web.tokens.kept import KeptAnswers, TokenAnswer
from fencerow.web.tokens.operations import note_use, tokens_of_hashes
from fencerow.web.tokens.record import TokenRecord, TokenState
from fencerow.web.tokens.scope import Grant
from fencerow.web.tokens.secret import hash_of, known_shape

log = logging.getLogger("fencerow.web")

ASKED_MAX: Final = 200  # tokens in one question
WAITING_MAX: Final = 1_000  # unknown tokens that wait for theirs
NOTED_S: Final = 60.0  # that a token is used is written so often at most

Waiting = dict[str, asyncio.Future[Grant | None]]


class KnownTokens:
    """Answers for one event loop. `cache_s`: how long an answer counts, from before the database was asked."""

    def __init__(
        self, client: ClientBase, *, cache_s: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._client = client
        self._cache_s = cache_s
        self._clock = clock
        self._kept = KeptAnswers()
        self._again: Waiting = {}  # those that were right when they were read last
        self._new: Waiting = {}
        self._asking: asyncio.Task[None] | None = None
        self._noting: asyncio.Task[None] | None = None
        self._notes_from_s = 0.0

    async def grant_of(self, token: str) -> Grant | None:
        """What the bearer of this token may do; None: it lets nobody pass. Why, is in the log alone.

        Raises:
            Unavailable, Busy, OutcomeUnknown: the database could not be asked, or too many wait for it. Nobody may
                pass then; the caller may come again.
        """
        if not known_shape(token):
            return None
        digest = hash_of(token)
        answer = self._kept.get(digest, self._clock())
        if answer is not None:
            return answer.grant
        return await asyncio.shield(self._question(digest))

    async def aclose(self) -> None:
        """End the question and the note that are under way; who still waits gets `Unavailable`."""
        tasks = [each for each in (self._asking, self._noting) if each is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _question(self, digest: str) -> asyncio.Future[Grant | None]:
        """The answer to come, one for all who ask for the same token."""
        asked = self._again.get(digest) or self._new.get(digest)
        if asked is not None:
            return asked
        waiting = self._again if self._kept.was_right(digest) else self._new
        if waiting is self._new and len(waiting) >= WAITING_MAX:
            raise Busy(
                f"{WAITING_MAX} unknown API tokens wait to be looked up",
                "the database is slow, or somebody tries many tokens",
                "come again later",
            )
        waiting[digest] = future = asyncio.get_running_loop().create_future()
        if self._asking is None:
            self._asking = asyncio.create_task(self._ask_all())
        return future

    async def _ask_all(self) -> None:
        try:
            while questions := self._next():
                await self._ask(questions)
        finally:
            self._asking = None
            for waiting in (self._again, self._new):  # somebody waits there only if this was cancelled
                _fail(waiting, _closed())
                waiting.clear()

    def _next(self) -> Waiting:
        """Those to ask for now. What another question has answered meanwhile needs none of its own."""
        questions: Waiting = {}
        for waiting in (self._again, self._new):
            while waiting and len(questions) < ASKED_MAX:
                digest = next(iter(waiting))
                future = waiting.pop(digest)
                answer = self._kept.get(digest, self._clock())
                if answer is None:
                    questions[digest] = future
                else:
                    _settle(future, answer.grant)
        return questions

    async def _ask(self, questions: Waiting) -> None:
        asked_s = self._clock()  # before the database is: what it answers may be as old as this
        try:
            found = await self._client.arun(ask(tokens_of_hashes(list(questions))))
        except asyncio.CancelledError:
            _fail(questions, _closed())
            raise
        except Exception as error:
            _fail(questions, error)
            return
        for digest, future in questions.items():
            answer = self._judged(found.get(digest), asked_s)
            self._kept.put(digest, answer)
            _settle(future, answer.grant)
        self._note([each for each in found.values() if each.state is TokenState.LIVE])

    def _judged(self, token: TokenRecord | None, asked_s: float) -> TokenAnswer:
        if token is None:
            return TokenAnswer(None, asked_s + self._cache_s)
        if token.state is not TokenState.LIVE:
            log.info("API token %s (%s) was refused: it is %s", token.id, token.name, token.state)
            return TokenAnswer(None, asked_s + self._cache_s)
        left_s = self._cache_s if token.expires_at_us is None else (token.expires_at_us - token.now_us) / 1e6
        return TokenAnswer(token.grant, asked_s + min(self._cache_s, left_s))

    # --- who is used -------------------------------------------------------------------------------

    def _note(self, used: Sequence[TokenRecord]) -> None:
        """Write beside all this that these are used, if nobody has for a while."""
        ids = [each.id for each in used if not _noted_lately(each)]
        if ids and self._noting is None and self._clock() >= self._notes_from_s:
            self._noting = asyncio.create_task(self._write(ids))

    async def _write(self, ids: list[str]) -> None:
        try:
            await self._client.arun(ask(note_use(ids, fresh_s=NOTED_S)))
        except Exception as error:  # nobody waits for it, and it is tried again
            self._notes_from_s = self._clock() + NOTED_S
            log.debug("it was not noted that API tokens are used: %s", error)
        finally:
            self._noting = None


def _noted_lately(token: TokenRecord) -> bool:
    """Not if the time lies ahead: then it was noted before the database's clock went back."""
    used_us = token.last_used_at_us
    return used_us is not None and 0 <= token.now_us - used_us < NOTED_S * 1e6


def _settle(future: asyncio.Future[Grant | None], grant: Grant | None) -> None:
    if not future.done():
        future.set_result(grant)


def _fail(questions: Waiting, error: Exception) -> None:
    for future in questions.values():
        if not future.done():
            future.set_exception(copy.copy(error) if isinstance(error, FencerowError) else error)


def _closed() -> Unavailable:
    return Unavailable("API tokens are looked up no more", "the gateway ends", "ask another one")
