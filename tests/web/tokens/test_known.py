"""A gateway asks for each request whom a token lets pass: from what it knows for a few seconds, or the database."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from typing import Any

import pytest

from fencerow import Client
from fencerow.db.postgres import PostgresEngine
from fencerow.db.run import Procedure
from fencerow.db.sqlite import SqliteEngine
from fencerow.errors import Busy, FencerowError, Unavailable
from fencerow.testing.clock import DatabaseClock
from fencerow.web import Grant, Scope
from fencerow.web.tokens import known as module
from fencerow.web.tokens.kept import KeptAnswers, TokenAnswer
from fencerow.web.tokens.known import KnownTokens
from fencerow.web.tokens.operations import tokens_of_hashes
from fencerow.web.tokens.secret import hash_of, new_token

AnyEngine = SqliteEngine | PostgresEngine
CACHE_S = 5.0


class Counted(Client):
    """A client that counts what it is asked, and can be kept from answering."""

    asked = 0
    trouble: FencerowError | None = None
    gate: asyncio.Event | None = None

    async def arun(self, procedure: Procedure[Any], connection: object | None = None) -> Any:
        self.asked += 1
        if self.gate is not None:
            await self.gate.wait()
        if self.trouble is not None:
            raise self.trouble
        return await super().arun(procedure, connection)


class Stage:
    """A gateway's process: its client, its clock, what it knows."""

    def __init__(self, engine: AnyEngine, *, cache_s: float = CACHE_S) -> None:
        self.client = Counted(engine)
        self.verbs = Client(engine).tokens
        self.now_s = 1000.0
        self.known = KnownTokens(self.client, cache_s=cache_s, clock=lambda: self.now_s)

    async def noted(self) -> None:
        while self.known._noting is not None:
            await asyncio.sleep(0)


@pytest.fixture
async def stage(engine: AnyEngine) -> AsyncIterator[Stage]:
    made = Stage(engine)
    yield made
    await made.known.aclose()


@pytest.fixture
async def small(lite: SqliteEngine) -> AsyncIterator[Stage]:
    """Where the database makes no difference."""
    made = Stage(lite)
    yield made
    await made.known.aclose()


async def test_a_live_token_lets_pass_and_a_revoke_counts_after_the_cache(stage: Stage) -> None:
    made = await stage.verbs.acreate("deploy", scopes=["submit"], queues=["mail"])

    grant = await stage.known.grant_of(made.token)
    await stage.verbs.arevoke(made.record.id)
    stage.now_s += CACHE_S - 0.1
    still = await stage.known.grant_of(made.token)
    stage.now_s += 0.1

    assert grant is not None and grant is still
    assert (grant.id, grant.name, grant.may(Scope.SUBMIT), grant.reaches("docs")) == (
        made.record.id,
        "deploy",
        True,
        False,
    )
    assert await stage.known.grant_of(made.token) is None
    assert await stage.known.grant_of(new_token()) is None


async def test_a_token_lets_nobody_pass_after_it_expired_whatever_is_kept(
    engine: AnyEngine, clock: DatabaseClock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "fencerow.web")
    stage = Stage(engine, cache_s=300.0)
    made = await stage.verbs.acreate("deploy", scopes=["read"], expires_s=3600)
    clock.advance(3500)

    assert await stage.known.grant_of(made.token) is not None
    clock.advance(100)
    stage.now_s += 100.0  # within the cache's time
    assert await stage.known.grant_of(made.token) is None
    assert f"API token {made.record.id} (deploy) was refused: it is expired" in caplog.text
    await stage.known.aclose()


async def test_what_is_known_asks_nobody_and_what_is_malformed_never_does(small: Stage) -> None:
    made, wrong = await small.verbs.acreate("deploy", scopes=["read"]), new_token()
    for token in (made.token, wrong):
        await small.known.grant_of(token)
    await small.noted()
    before = small.client.asked

    for token in [made.token, wrong, "", "x", "fct_" + "é" * 43, made.token[:-1], f"{wrong}\n"] * 20:
        await small.known.grant_of(token)

    assert small.client.asked == before


async def test_many_who_ask_at_once_are_one_question_and_each_gets_his_own_answer(small: Stage) -> None:
    right = [(await small.verbs.acreate(f"t{number}", scopes=["read"])).token for number in range(20)]
    wrong = [new_token() for _ in range(100)]
    tokens = [*wrong, *right, *right]

    grants = await asyncio.gather(*map(small.known.grant_of, tokens))

    assert [grant and grant.name for grant in grants] == [None] * 100 + [
        f"t{number}" for number in range(20)
    ] * 2
    await small.noted()
    assert small.client.asked == 2  # one question, and the note that some are used


async def test_a_flood_of_wrong_tokens_is_one_question_at_a_time_and_stops_no_known_one(
    small: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "WAITING_MAX", 30)
    monkeypatch.setattr(module, "ASKED_MAX", 10)
    made, asked = await small.verbs.acreate("deploy", scopes=["read"]), list[list[str]]()
    await small.known.grant_of(made.token)
    await small.noted()
    small.now_s += CACHE_S

    def noted(hashes: list[str]) -> Any:
        asked.append(hashes)
        return tokens_of_hashes(hashes)

    monkeypatch.setattr(module, "tokens_of_hashes", noted)
    small.client.gate = asyncio.Event()
    flood = []
    for _ in range(2):  # the first ten are asked for, and others take their places
        flood += [asyncio.create_task(small.known.grant_of(new_token())) for _ in range(50)]
        await asyncio.sleep(0)
        await asyncio.sleep(0)
    good = asyncio.create_task(small.known.grant_of(made.token))
    await asyncio.sleep(0)

    small.client.gate.set()
    grant, *answers = await asyncio.gather(good, *flood, return_exceptions=True)

    assert isinstance(grant, Grant)
    assert [each for each in answers if each is not None and not isinstance(each, Busy)] == []
    assert len([each for each in answers if each is None]) == 40  # ten under way, and thirty who wait
    assert [len(each) for each in asked] == [10, 10, 10, 10, 1]
    assert asked[1][0] == hash_of(made.token)


@pytest.mark.parametrize("cache_s", [CACHE_S, 0.0])
async def test_nobody_passes_while_the_database_is_away(lite: SqliteEngine, cache_s: float) -> None:
    stage = Stage(lite, cache_s=cache_s)
    made = await stage.verbs.acreate("deploy", scopes=["read"])
    assert await stage.known.grant_of(made.token) is not None
    await stage.noted()
    stage.now_s += cache_s
    stage.client.trouble = Unavailable("it is away")

    for _ in range(2):
        found = await asyncio.gather(
            *[stage.known.grant_of(made.token) for _ in range(3)], return_exceptions=True
        )
        assert [type(each) for each in found] == [Unavailable] * 3
    stage.client.trouble = None
    assert await stage.known.grant_of(made.token) is not None
    await stage.known.aclose()


async def test_a_cache_of_nothing_believes_nothing(lite: SqliteEngine) -> None:
    stage = Stage(lite, cache_s=0.0)
    made = await stage.verbs.acreate("deploy", scopes=["read"])
    assert await stage.known.grant_of(made.token) is not None
    # One asks before the revoke and is not yet answered; who asks after it does not get that answer.
    stage.client.gate = asyncio.Event()
    before = asyncio.create_task(stage.known.grant_of(made.token))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    await stage.verbs.arevoke(made.record.id)
    after = asyncio.create_task(stage.known.grant_of(made.token))
    await asyncio.sleep(0)
    stage.client.gate.set()
    await before

    assert await after is None
    await stage.known.aclose()


async def test_that_a_token_is_used_is_noted_at_most_once_a_minute(
    stage: Stage, clock: DatabaseClock
) -> None:
    made, other = [await stage.verbs.acreate(name, scopes=["read"]) for name in "ab"]

    async def used() -> tuple[int | None, int | None]:
        await stage.known.grant_of(made.token)
        await stage.noted()
        stage.now_s += CACHE_S
        first, second = await stage.verbs.aknown()
        assert (first.id, second.id) == (made.record.id, other.record.id)
        return first.last_used_at_us, second.last_used_at_us

    first, nothing = await used()
    again, _ = await used()
    clock.advance(61)
    later, _ = await used()

    assert (nothing, again) == (None, first)
    assert first is not None and later is not None
    assert later - first > 60_000_000


async def test_that_a_use_cannot_be_noted_stops_nobody(small: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    made = await small.verbs.acreate("deploy", scopes=["read"])
    tried = []

    def failing(ids: list[str], **_: object) -> Any:
        tried.append(ids)
        raise Busy("not now")

    monkeypatch.setattr(module, "note_use", failing)
    for _ in range(5):
        assert await small.known.grant_of(made.token) is not None
        await small.noted()
        small.now_s += CACHE_S
    assert len(tried) == 1  # not at each question: once a minute
    small.now_s += module.NOTED_S
    await small.known.grant_of(made.token)
    await small.noted()
    assert len(tried) == 2


async def test_who_waits_when_the_gateway_ends_is_told(small: Stage) -> None:
    small.client.gate = asyncio.Event()
    under_way = asyncio.create_task(small.known.grant_of(new_token()))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    behind = asyncio.create_task(small.known.grant_of(new_token()))
    await asyncio.sleep(0)

    await small.known.aclose()

    found = await asyncio.gather(under_way, behind, return_exceptions=True)
    assert [type(each) for each in found] == [Unavailable] * 2


async def test_who_gives_up_takes_no_answer_from_others(small: Stage) -> None:
    made = await small.verbs.acreate("deploy", scopes=["read"])
    small.client.gate = asyncio.Event()
    hasty, patient = (asyncio.create_task(small.known.grant_of(made.token)) for _ in range(2))
    await asyncio.sleep(0)

    hasty.cancel()
    small.client.gate.set()

    assert await patient is not None
    assert hasty.cancelled()


def test_wrong_answers_push_out_no_right_ones() -> None:
    kept, right = KeptAnswers(entries_max=3), TokenAnswer(Grant("id", "name", frozenset()), 10.0)
    kept.put("right", right)

    for number in range(10):
        kept.put(f"wrong {number}", TokenAnswer(None, 10.0))
    found = [number for number in range(10) if kept.get(f"wrong {number}", 0.0) is not None]
    kept.put("wrong 9", right)

    assert kept.get("right", 9.9) is right and kept.get("right", 10.0) is None and kept.was_right("right")
    assert found == [7, 8, 9]
    assert kept.get("wrong 9", 0.0) is right
    kept.put("right", TokenAnswer(None, 10.0))
    assert kept.get("right", 0.0) == TokenAnswer(None, 10.0) and not kept.was_right("right")
