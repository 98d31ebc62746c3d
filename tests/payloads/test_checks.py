"""What people are shown of sealed and signed payloads: by the doctor, by `why` and by `jobs show`."""

from __future__ import annotations

import asyncio
from pathlib import Path

from fencerow import App
from fencerow.config import Config
from fencerow.core.finding import Finding, Level
from fencerow.events import Event, consumer
from fencerow.events.groups import END, make_group
from fencerow.payloads.checks import examine_payloads
from fencerow.testing import drain
from tests.kit.pace import PATIENCE_S
from tests.payloads.conftest import ROTATED, SEALS, of, stored, write

CONFIG = Config(url="sqlite:///other.db")  # the checks look at the engine


def note(text: str) -> None: ...


def findings(app: App) -> dict[str, Finding]:
    return {each.name: each for each in examine_payloads(app.engine, CONFIG)}


def test_the_doctor_says_nothing_where_nothing_is_sealed(url: str) -> None:
    with App(url) as app:
        app.job(note).submit("plain")
        assert findings(app) == {}


def test_the_doctor_counts_live_jobs_by_key_and_names_an_altered_one(url: str, how: str) -> None:
    with (
        App(url) as before,
        App(url, seal=SEALS[how]()) as app,
        App(url, seal=ROTATED[how]("k2", "k1")) as newer,
    ):
        _, _, handle = [each.job(note).submit("text") for each in (before, app, newer)]
        found = findings(app)["keys of payloads"].found
        assert found == "payloads by their key: live jobs 1 under k1, 1 under k2, 1 under none"
        text: str = stored(app, handle.id)["args"]
        write(app, handle.id, "args", text.replace(of(text)["mark"], "0" * 64))
        drain(newer)
        altered = findings(newer)["altered payloads"]
    assert altered.level is Level.WARN and altered.found.startswith("2 jobs failed within 7 days")


async def test_the_doctor_finds_a_key_wherever_a_payload_lies(url: str, how: str, tmp_path: Path) -> None:
    """Else whoever takes a key out strands what is left under it: a live job, or an end that nobody has confirmed."""
    config = Config(url=url, outside_store=f"file://{tmp_path}/large")
    async with App(config=config, seal=SEALS[how]()) as app:

        @app.job(handover="line")
        async def handed(text: str) -> str:
            return text

        @consumer(app, group="g", topics=["job.succeeded"])
        async def seen(event: Event) -> None: ...

        app.schedule(handed.call("daily"), "nightly", cron="0 3 1 1 *")
        await asyncio.to_thread(app.check_or_create)
        await app.engine.arun(make_group("g", ["job.succeeded"], partitions=1, start=END))
        texts = "small", "x" * 100_000
        ended = [await handed.asubmit(each) for each in texts]
        await app.asubmit_many([handed.using(delay_s=3600).call(each) for each in texts])
        async with app.worker():
            assert [await each.aresult(PATIENCE_S) for each in ended] == list(texts)
        found = (await asyncio.to_thread(findings, app))["keys of payloads"].found
    assert found == (
        "payloads by their key: events 1 under k1; finished jobs 2 under k1; handovers 2 under k1; "
        "live jobs 2 under k1; results 2 under k1; schedules 1 under k1"
    )
