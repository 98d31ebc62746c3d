"""Part C of the four systems through examples/bot: interactions over HTTP, and replies at what stands for Discord."""

from __future__ import annotations

import asyncio
import importlib
import os
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import closing, contextmanager
from contextvars import copy_context
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec
import psycopg
import pytest

from examples.bot.outside import StandIn, stand_in
from fencerow import State, Unavailable
from fencerow.web.discord import ReplyTo
from fencerow.web.gateway.server import Server
from fencerow.web.settings import WebSettings
from tests.kit.loops import module_path
from tests.kit.pace import PATIENCE_S, slower
from tests.web.gateway.serving import serving_on
from tests.whole.systems.outside import until
from tests.whole.systems.stage import ROOT, STEADY, Stage

DEFERRED = {"type": 5}


@pytest.fixture
def discord(monkeypatch: pytest.MonkeyPatch) -> Iterator[StandIn]:
    with stand_in() as made:
        for name, value in made.environment.items():
            monkeypatch.setenv(name, value)
        yield made


@pytest.fixture
async def stage(discord: StandIn, url: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Stage]:
    monkeypatch.setenv("FENCEROW_URL", url)
    made = Stage(importlib.import_module("examples.bot.bot"), url, monkeypatch)
    await made.open(**STEADY)
    yield made
    await bot(made).api.aclose()
    await made.close()


def bot(stage: Stage) -> ModuleType:
    """The example, as it was loaded last."""
    return stage._system


class Asks:
    """A person at Discord, who asks a bot that is served on a socket."""

    def __init__(self, discord: StandIn, port: int) -> None:
        self._discord = discord
        self._endpoint = f"http://127.0.0.1:{port}/"

    async def __call__(self, text: str, channel: str = "1", **more: Any) -> tuple[str, dict[str, Any]]:
        return await asyncio.to_thread(self._discord.ask, self._endpoint, text, channel, **more)


@pytest.fixture
async def asks(stage: Stage, discord: StandIn) -> AsyncIterator[Asks]:
    bot(
        stage
    ).discord._busy_s = PATIENCE_S  # a slow machine is not busy; the one test that is about it says so
    async with serving_on(Server(bot(stage).discord, WebSettings())) as served:
        yield Asks(discord, served.port)


async def delivered(stage: Stage) -> None:
    """What can be handed over now is shown."""
    while taken := await stage.app.client.handovers("discord").atake(10):
        for each in taken:
            await bot(stage).show(each)


async def ids(stage: Stage, name: str = "answer") -> list[str]:
    return [each.id for each in await stage.app.client.alist_jobs(name=name)]


@contextmanager
def locked(stage: Stage, url: str) -> Iterator[None]:
    """Nobody can store a job meanwhile."""
    if stage.app.engine.dialect == "sqlite":
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None)) as lite:
            lite.execute("BEGIN IMMEDIATE")
            yield
        return
    with psycopg.connect(url) as stranger:
        stranger.execute("LOCK TABLE fencerow.jobs IN ACCESS EXCLUSIVE MODE")
        yield
        stranger.rollback()


@pytest.mark.scenario("C.1")
async def test_it_is_deferred_before_anybody_works_and_the_reply_comes_without_a_request(
    stage: Stage, asks: Asks, discord: StandIn
) -> None:
    token, told = await asks("Storks stand on one leg. Storks eat frogs. It rains.")
    assert (told, discord.replies) == (DEFERRED, [])

    await stage.work()
    await delivered(stage)

    assert discord.texts(token) == ["Storks stand on one leg. Storks eat frogs."]
    assert (await stage.app.client.handovers("discord").aconfirm((await ids(stage))[0])).replay


@pytest.mark.scenario("C.2")
async def test_the_same_post_within_five_seconds_is_one_job_and_has_one_reply(
    stage: Stage, asks: Asks, discord: StandIn
) -> None:
    first, second = await asks("hello there"), await asks("hello there")
    elsewhere = await asks("hello there", "2")
    stage.pass_time(6)
    later = await asks("hello there")

    assert [told for _, told in (first, elsewhere, later)] == [DEFERRED] * 3
    assert (second[1]["type"], second[1]["data"]["flags"]) == (4, 64)  # only its person is told
    assert len(await ids(stage)) == 3
    await stage.work()
    await delivered(stage)
    assert sorted(each for each, _ in discord.replies) == sorted([first[0], elsewhere[0], later[0]])


@pytest.mark.scenario("C.3")
async def test_without_the_store_busy_is_said_in_time_and_no_post_becomes_two_jobs(
    stage: Stage, asks: Asks, discord: StandIn, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Away: no job. Silent: the submit goes on, and its reply takes the place of "busy"."""
    await asks("are you there?")
    with monkeypatch.context() as away:
        away.setattr(bot(stage).app, "asubmit", unreachable)
        _, refused = await asks("hello")
    assert (refused["type"], len(await ids(stage))) == (4, 1)
    bot(stage).discord._busy_s = slower(0.5)
    with locked(stage, url):
        began = asyncio.get_running_loop().time()
        token, silent = await asks("hello")
        took_s = asyncio.get_running_loop().time() - began
    await until(lambda: not bot(stage).discord._room.taken, "the end of the submit")
    await stage.work()
    await delivered(stage)

    assert (silent["type"], took_s < slower(10.0)) == (4, True)
    assert (discord.texts(token), len(await ids(stage))) == (["hello"], 2)


async def unreachable(_call: object) -> None:
    raise Unavailable("the database is away")


@pytest.mark.scenario("C.6")
async def test_attachments_are_read_beside_one_another_and_a_lost_one_is_named(
    stage: Stage, asks: Asks, discord: StandIn
) -> None:
    discord.files |= {"frogs.txt": "Frogs live in ponds. Frogs eat flies.", "map.png": ""}
    token, _ = await asks("What about frogs?", files=("frogs.txt", "map.png", "lost.txt"))

    await stage.work()
    await delivered(stage)

    assert discord.texts(token) == ["What about frogs? Frogs eat flies.\nI could not read lost.txt."]
    assert len(await ids(stage, "look")) == 3 and len(await ids(stage)) == 1


@pytest.mark.scenario("C.8")
async def test_it_types_says_that_it_takes_longer_and_the_answer_comes_last_and_once(
    stage: Stage, asks: Asks, discord: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file whose server is away holds the answer up; those behind it wait, and then no longer."""
    assert (bot(stage).TYPING_S, bot(stage).NOTICE_S) == (8, 300)
    monkeypatch.setattr(bot(stage), "NOTICE_S", 16)  # the same, and less to play
    discord.files["late.txt"] = "Storks come late."
    token, _ = await asks("When?", files=("late.txt",))
    await stage.app.client.apause_queue("media")
    async with stage.app.worker():
        await until(lambda: discord.typings == 1, "the first typing")
        quick, _ = await asks("And now?")
        await stage.app.client.await_ended((await ids(stage))[0], timeout_s=PATIENCE_S)
        await delivered(stage)
        assert discord.replies == [], "it went past an older post"
        for shown in (2, 3):
            stage.pass_time(bot(stage).TYPING_S)
            await until(lambda shown=shown: discord.typings >= shown, "the next typing")
        await until(lambda: discord.texts(token), "the notice")
        await stage.app.client.aresume_queue("media")
        await stage.app.client.await_ended((await ids(stage))[1], timeout_s=PATIENCE_S)
        await delivered(stage)

    assert discord.texts(token) == [bot(stage).NOTICE, "When? Storks come late."]
    assert [each for each, _ in discord.replies] == [token, token, quick]


@pytest.mark.scenario("C.8")
async def test_a_notice_that_is_under_way_never_stands_over_the_answer(
    stage: Stage, asks: Asks, discord: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The job ends while its notice is on the way to Discord: the answer waits for that."""
    token, _ = await asks("When?")
    (answering,) = await ids(stage)
    edit, showing, outside = bot(stage).api.edit, set[asyncio.Task[None]](), copy_context()

    async def slow(reply: Any, text: str) -> None:
        if text == bot(stage).NOTICE:
            await stage.work()
            showing.add(asyncio.create_task(delivered(stage), context=outside))
            await asyncio.wait(showing, timeout=1.0)  # it would be through by then, if nothing held it
        await edit(reply, text)

    monkeypatch.setattr(bot(stage).api, "edit", slow)
    reply = (await stage.app.client.aget(answering)).args["reply"]
    await bot(stage).notify(msgspec.convert(reply, ReplyTo), answering)
    await asyncio.gather(*showing)

    assert discord.texts(token) == [bot(stage).NOTICE, "When?"]


@pytest.mark.scenario("C.9")
async def test_a_reply_that_is_refused_for_now_comes_later_and_one_that_is_over_holds_nobody_up(
    stage: Stage, asks: Asks, discord: StandIn
) -> None:
    first, second = (await asks("one"))[0], (await asks("two"))[0]
    await stage.work()
    discord.refusals.append((429, {"retry_after": 2}))
    await delivered(stage)
    assert discord.replies == [], "the line waits"
    stage.pass_time(3)
    await delivered(stage)
    lost, last = (await asks("three"))[0], (await asks("four"))[0]
    await stage.work()
    discord.refusals.append((400, {"code": 50035}))
    await delivered(stage)

    assert [each for each, _ in discord.replies] == [first, second, last]
    assert discord.texts(lost) == []


@pytest.mark.scenario("C.17")
async def test_a_second_export_is_refused_and_one_that_was_not_stored_blocks_nobody(
    stage: Stage, asks: Asks, discord: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as away:
        away.setattr(bot(stage).app, "asubmit", unreachable)
        _, lost = await asks("", name="export")
    (token, first), (_, second) = await asks("", name="export"), await asks("", name="export")
    other = await asks("", name="export", user="10")
    await stage.work()
    await delivered(stage)
    stage.pass_time(24 * 3600)
    _, next_day = await asks("", name="export")

    private = {"type": 5, "data": {"flags": 64}}
    assert (lost["type"], first, second["type"]) == (4, private, 4)
    assert (other[1], next_day) == (private, private)
    assert discord.texts(token) == ["0 answers were given here."]


@pytest.mark.scenario("C.4")
async def test_a_killed_worker_costs_no_reply_and_doubles_none(
    stage: Stage, asks: Asks, discord: StandIn, tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    await stage.open(lease_s=slower(3.0), renew_s=0.2)
    deaths = 3 if pytestconfig.getoption("--all") else 1  # each is a process that starts
    discord.files["frogs.txt"] = "Frogs eat flies."
    async with serving_on(Server(bot(stage).discord, WebSettings())) as served:
        tokens = [
            (await Asks(discord, served.port)(f"post {number}", files=("frogs.txt",)))[0]
            for number in range(5)
        ]
        for number in range(deaths):
            with stage.process(tmp_path / f"{number}.log", lease_s=slower(3.0), renew_s=0.2):
                await until(lambda: discord.typings > 0, "some work")  # then it is killed
        stage.pass_time(slower(10.0))
        async with stage.app.worker():
            for each in await ids(stage):
                await stage.app.client.await_ended(each, timeout_s=PATIENCE_S)
        await delivered(stage)

    assert [each for each, _ in discord.replies] == tokens
    assert {(await stage.app.client.aget(each)).state for each in await ids(stage)} == {State.SUCCEEDED}


@pytest.mark.prove
def test_the_show_loses_no_reply_while_everything_is_killed(url: str) -> None:
    ours = {name: value for name, value in os.environ.items() if not name.startswith("FENCEROW_")}
    done = subprocess.run(
        [sys.executable, "-m", "examples.bot"],
        cwd=ROOT,
        env=ours | {"PYTHONPATH": module_path(ROOT / "src"), "FENCEROW_URL": url},
        capture_output=True,
        text=True,
        timeout=4 * PATIENCE_S,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "25 replies, in the order of each channel" in done.stdout
