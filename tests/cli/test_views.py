"""What each view prints, on a database where everything says something: at 80 columns, and for programs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from fencerow import Client
from fencerow.cli.main import root
from fencerow.core.model.ids import new_id
from fencerow.core.model.wanted import SlotGroupNow, Stated
from fencerow.core.store import store
from fencerow.db.postgres import PostgresEngine
from fencerow.db.sqlite import SqliteEngine
from fencerow.events import NewEvent, consumers, publish_many
from fencerow.events.consumers import Aside
from fencerow.events.groups import GroupStart, make_group
from fencerow.events.sequencer import sequence
from fencerow.guards.mutex import mutexes
from fencerow.guards.mutex.mutexes import MutexTaker
from fencerow.handovers.terms import HandoverTerms
from fencerow.limits import Limit, Rate, limits
from fencerow.turns import handing
from tests.cli.conftest import Cli
from tests.cli.test_json import WITHOUT, commands
from tests.events.conftest import app_on
from tests.house.tree import ROOT
from tests.kit import jobs
from tests.steps.test_waits import asleep

AnyEngine = SqliteEngine | PostgresEngine
LIMIT = Limit(
    "queue:mail", at_once=10, rate=Rate(100, per_s=60, burst=5), hours="mon-fri 09:00-17:00 Europe/Berlin"
)
KEY = "the account of the provider that answered with something that nobody expected"
LONG = "the_provider_answered_with_something_that_nobody_expected"
SENTENCE = "the provider answered with something that nobody expected, " * 4
ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
PART_OF_AN_ID = re.compile(r"\b01[0-9a-f]{6}-|\b01[0-9a-f]{2,6}…")  # where no whole id stands


def worker(engine: AnyEngine) -> str:
    holder = new_id()
    said = Stated(0, (SlotGroupNow((jobs.QUEUE, "documents", "invoices-of-the-eu"), 12, 3, 1, 3.5),))
    made = store.register(
        holder=holder,
        name=f"worker-of-{LONG}",
        host="db1.example.org",
        pid=7,
        info='{"queues":["mail"],"slots":12,"version":"1.2","names":["send"]}',
        lease_s=30.0,
        stated=msgspec.json.encode(said).decode(),
    )
    assert engine.run(made)
    return holder


def failed(engine: AnyEngine, holder: str) -> str:
    job = jobs.running(engine, holder, queue=f"q-{LONG}", tags='["eu","vip"]')
    error = f'{{"type":"ValueError","message":"{SENTENCE}","traceback":"Traceback:\\n  here"}}'
    engine.run(store.fail([store.Failure(job.id, job.attempt, error)], holder=holder))
    return job.id


def parked(engine: AnyEngine) -> None:
    app = app_on(engine)
    publish_many(app, [NewEvent(f"order.{LONG}", {"order": 1}, "ada", {"trace": "t"})])
    engine.run(sequence())
    engine.run(make_group("billing", ["order.*"], partitions=1, start=GroupStart("beginning")))
    held = engine.run(consumers.hold_partitions("billing", holder=new_id(), name="w", lease_s=30.0))
    error = f'{{"type":"ValueError","message":"{SENTENCE}"}}'
    aside = Aside(1, 1, "ada", 8, 0.0, True, error)
    engine.run(consumers.advance(held.leases[0], old=0, cursor=1, asides=[aside]))
    app.close()


@pytest.fixture
def views(cli: Cli, url: str, engine: AnyEngine) -> dict[str, tuple[str, ...]]:
    """Each view by its name, with the words that show it."""
    holder = worker(engine)
    running = jobs.running(engine, holder, name=jobs.NAME)
    engine.run(store.progress(running.id, holder=holder, attempt=1, percent=40.0, note="halfway"))
    engine.run(store.log(running.id, holder=holder, attempt=1, level="info", message=SENTENCE))
    broken = failed(engine, holder)
    jobs.submit(engine, jobs.new_job(delay_s=3_600.0))
    cli("queues", "pause", jobs.QUEUE, "--reason", SENTENCE)
    taker = MutexTaker(f"sp:{LONG}", holder, 30.0, "db1.example.org", 7, "deal", running.id, 1, "send")
    assert engine.run(mutexes.make(taker)) == 1
    parked(engine)
    keyed = (jobs.new_job(exclusive=KEY, name=f"n-{LONG}", queue=f"q-{LONG}") for _ in range(2))
    jobs.submit(engine, *keyed)
    engine.run(handing.hand_over())
    jobs.submit(engine, jobs.new_job(share=KEY, name=f"n-{LONG}", queue=f"q-{LONG}"))
    handed = jobs.new_job(
        terms=HandoverTerms(f"r-{LONG}", KEY, 60.0).terms, name=f"n-{LONG}", queue=f"q-{LONG}"
    )
    (ended,) = jobs.submit(engine, handed)
    engine.run(store.cancel(ended, actor="someone"))
    sleeping = asleep(engine, holder, signal=f"approved-{LONG}", queue=f"q-{LONG}")
    Client(engine).signal(sleeping, "another", SENTENCE)
    engine.run(limits.define(LIMIT, actor="someone", reason=SENTENCE))
    return {
        "jobs list": ("jobs",),
        "jobs show": ("jobs", "show", running.id),
        "jobs show failed": ("jobs", "show", broken),
        "jobs cancel": ("jobs", "cancel", running.id, "--reason", "it is enough"),
        "why": ("why", running.id),
        "queues list": ("queues",),
        "queues pause": ("queues", "pause", "other"),
        "queues resume": ("queues", "resume", "other"),
        "workers list": ("workers",),
        "workers show": ("workers", "show", holder),
        "workers pause": ("workers", "pause", holder),
        "exclusive list": ("exclusive",),
        "exclusive show": ("exclusive", "show", KEY),
        "handovers list": ("handovers",),
        "handovers show": ("handovers", "show", ended),
        "handovers confirm": ("handovers", "confirm", ended),
        "steps list": ("steps",),
        "steps show": ("steps", "show", sleeping),
        "signal": ("signal", sleeping, "another", '"yes"'),
        "shares list": ("shares",),
        "shares set": ("shares", "set", "mail", KEY, "--weight", "3"),
        "limits list": ("limits",),
        "limits show": ("limits", "show", "queue:mail"),
        "limits set": ("limits", "set", "queue:mail", "--at-once", "2"),
        "limits remove": ("limits", "remove", "queue:mail"),
        "mutexes list": ("mutexes",),
        "mutexes show": ("mutexes", "show", taker.key),
        "events groups": ("events",),
        "events lag": ("events", "lag"),
        "events parked": ("events", "parked"),
        "events show": ("events", "show", "1"),
        "events redrive": ("events", "redrive", "billing", "--all"),
        "events replay": ("events", "replay", "billing", "--from", "beginning"),
        "events remove": ("events", "remove", "billing"),
        "backfills list": ("backfills",),
        "mutexes release": ("mutexes", "release", taker.key),
        "doctor": ("doctor",),
        "migrate": ("migrate",),
        "version": ("version",),
    }


def test_every_view_keeps_to_80_columns_and_cuts_no_id(
    cli: Cli, views: dict[str, tuple[str, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    long, cut = {}, {}
    for name in (name for name in views if not changes(name)):
        for more in ((), ("--utc",)) if name.split()[0] in TOLD_IN_TIMES else ((),):
            lines = cli(*views[name], *more).out.splitlines()
            long[name, *more] = [line for line in lines if len(line) > 80]
            cut[name, *more] = [line for line in lines if PART_OF_AN_ID.search(ID.sub("", line))]

    assert {name: lines for name, lines in long.items() if lines} == {}
    assert {name: lines for name, lines in cut.items() if lines} == {}
    assert len(long) > 20


TOLD_IN_TIMES = (
    "jobs",
    "handovers",
    "queues",
    "workers",
    "mutexes",
    "exclusive",
    "shares",
    "steps",
    "limits",
    "events",
)
CHANGING = {
    "signal",
    "set",
    "confirm",
    "cancel",
    "pause",
    "resume",
    "redrive",
    "replay",
    "remove",
    "release",
    "migrate",
}


def changes(name: str) -> bool:
    return bool(CHANGING & set(name.split()))


def test_every_document_has_the_fields_that_the_page_says(
    cli: Cli, views: dict[str, tuple[str, ...]]
) -> None:
    page = dict(documented((ROOT / "docs" / "cli.md").read_text("utf-8")))
    for name, words in views.items():
        kind, fields = page[name.removesuffix(" failed")]
        document = cli(*words, "--json").json
        assert isinstance(document, list) == (kind == "array"), name
        if document or kind == "object":
            assert keys(document) == fields, name


def test_the_page_has_every_command_that_has_json() -> None:
    page = dict(documented((ROOT / "docs" / "cli.md").read_text("utf-8")))
    named = {name for name, _ in commands(root)} - WITHOUT.keys()

    assert named - page.keys() == set()
    assert page.keys() - named == set()


def keys(document: Any) -> set[str]:
    (first, *_) = document if isinstance(document, list) else [document]
    return set(first)


def documented(page: str) -> Iterator[tuple[str, tuple[str, set[str]]]]:
    """Each command of the table, whether its document is a list, and its fields."""
    part = page.split("## JSON")[1].split("\n## ")[0]
    found: dict[str, tuple[str, set[str]]] = {}
    for names, kind, fields in re.findall(r"^\| (`.+?) \| (array|object) \| (.+) \|$", part, re.MULTILINE):
        outside = re.sub(r"\([^()]*\)", "", fields)
        words = {word for text in re.findall(r"`([^`]+)`", outside) for word in text.split()}
        for name in re.findall(r"`([^`]+)`", names):
            found[name] = (kind, {word for word in words if not word.startswith("-")})
    found["mutexes list"] = ("array", found["mutexes show"][1])
    found["workers set"] = found["workers pause"]
    yield from found.items()


def test_a_view_at_a_terminal_is_as_wide_as_the_terminal(
    cli: Cli, views: dict[str, tuple[str, ...]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fencerow.command.output.is_terminal", lambda: True)
    monkeypatch.setenv("COLUMNS", "80")
    narrow = cli("jobs").out
    monkeypatch.setenv("COLUMNS", "200")
    wide = cli("jobs").out

    assert "in a wider terminal, or with --json)" in narrow
    assert "submitted" in wide.splitlines()[0] and "in a wider terminal" not in wide
