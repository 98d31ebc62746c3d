"""Make the pictures of the dashboard in the README again: `.venv/bin/python -m tools.dashboard_pictures`.

It needs Chromium. The jobs are made up; the picture is that of the dashboard as it stands, in light and in dark.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from pathlib import Path

from playwright.async_api import ViewportSize

from fencerow import App
from fencerow.core.worker import blocked
from fencerow.web.dashboard.asgi import Dashboard
from tests.house.tree import ROOT
from tests.web.dashboard.crowd import KINDS, crowd
from tests.web.dashboard.test_browser import CHROMIUM, chromium, logged_in, served

FOLDER = ROOT / "docs" / "pictures"
WINDOW: ViewportSize = {"width": 1280, "height": 960}
JOBS, QUEUED = 40_000, 360
SCHEMES = ("light", "dark")
TAKEN = asyncio.Event()  # until then the jobs run


async def main() -> None:
    if CHROMIUM is None:
        sys.exit("there is no Chromium on this machine")
    # All of it runs in one event loop here: what blocks that is the tool, and is told with paths of this machine.
    blocked.BLOCKED_S = 3600.0
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "shop.db"
        async with App(f"sqlite:///{path}", actor="mara") as app:
            await _furnish(app, path)
            await _picture(app)


async def _furnish(app: App, path: Path) -> None:
    for name, queue in [(each.name, each.queue) for each in KINDS] + [("read_scan", "ocr")]:
        app.job(name=name, queue=queue)(_work)
    await app.client.apaused_queues()  # an app makes its tables when it is first used
    await asyncio.to_thread(crowd, path, finished=JOBS, queued=QUEUED)
    await app.client.apause_queue("ocr", reason="provider outage")


async def _work(path: str, tenant: str) -> None:  # noqa: ARG001 (as the jobs were submitted)
    await TAKEN.wait()


async def _picture(app: App) -> None:
    token = (await app.client.tokens.acreate("mara", scopes=["admin"])).token
    trouble: list[str] = []
    async with (
        app.worker(name="extract-1", queues=["extract", "ocr"]),
        app.worker(name="web-1", queues=["default", "mail", "reports", "webhooks"]),
        served(Dashboard(app, read_only=False), app) as base,
        chromium() as browser,
    ):
        for scheme in SCHEMES:
            context = await browser.new_context(color_scheme=scheme, viewport=WINDOW)  # type: ignore[arg-type]
            page = await logged_in(context, base, token, trouble)
            await page.wait_for_selector(".uplot")
            await page.wait_for_function("!document.body.innerText.includes('first look is under way')")
            content = await page.screenshot()
            (FOLDER / f"overview-{scheme}.png").write_bytes(content)
            await context.close()
        TAKEN.set()
    assert not trouble, trouble


if __name__ == "__main__":
    asyncio.run(main())
