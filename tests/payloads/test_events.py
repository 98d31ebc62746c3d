"""The event of a job's success, where results are sealed, signed, or outside the database."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from fencerow import App
from fencerow.config import Config
from fencerow.errors import SealKeyUnknown
from fencerow.events import Event, consumer
from fencerow.events.groups import END, make_group
from tests.kit.pace import PATIENCE_S
from tests.payloads.conftest import ROTATED, SEALS

GROUPS = ("knows", "knows-another", "knows-none")


async def test_a_consumer_gets_what_the_job_returned_and_no_reference(
    url: str, how: str, tmp_path: Path
) -> None:
    """One whose app has another key is told so; one whose app has none gets the others' facts."""
    config = Config(url=url, outside_store=f"file://{tmp_path}/large")
    seals = SEALS[how](), ROTATED[how]("k2"), None
    seen: asyncio.Queue[tuple[str, Any]] = asyncio.Queue()
    small, large = "", ""
    for group, seal in zip(GROUPS, seals, strict=True):
        async with App(config=config, seal=seal) as app:

            @consumer(app, group=group, topics=["job.succeeded"], deliveries_max=1)
            async def told(event: Event) -> None:
                try:
                    seen.put_nowait((event.key or "", event.data))
                except SealKeyUnknown:
                    seen.put_nowait((event.key or "", "unknown"))

            @app.job
            async def echo(text: str) -> str:
                return text

            if group == "knows":
                await asyncio.to_thread(app.check_or_create)
                for each in GROUPS:
                    await app.engine.arun(make_group(each, ["job.succeeded"], partitions=8, start=END))
                small, large = [(await echo.asubmit(text)).id for text in ("é", "x" * 100_000)]
            async with app.worker():
                found = dict([await asyncio.wait_for(seen.get(), PATIENCE_S) for _ in range(2)])
        assert found[large]["outside"] is True and "result" not in found[large]
        match group:
            case "knows":
                assert (found[small]["result"], found[small]["job"]) == ("é", small)
            case "knows-another":
                assert found[small] == "unknown"
            case _:
                assert "k1" in str(found[small]["result"])
