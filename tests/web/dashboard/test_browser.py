"""The dashboard in a real browser, light and dark, desktop and phone; pictures of all screens are kept to be seen."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from playwright.async_api import Browser, BrowserContext, Page, ViewportSize, async_playwright, expect

from fencerow import App
from fencerow.core.model.state import State
from fencerow.supervisor.probes import ProbeAddress, listening
from fencerow.web.dashboard.asgi import Dashboard
from fencerow.web.gateway.server import Server
from fencerow.web.settings import WebSettings
from tests.house.tree import ROOT
from tests.kit.pace import PATIENCE_S
from tests.web.dashboard.hostile import HOSTILE
from tests.web.dashboard.test_jobs import cursed
from tests.web.gateway.conftest import ended

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
PICTURES = ROOT / ".fencerow" / "dashboard"
DESKTOP: ViewportSize = {"width": 1280, "height": 900}
PHONE: ViewportSize = {"width": 390, "height": 844}
SWITCHES = (
    "--disable-gpu", "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--no-first-run",
)  # fmt: skip
PATIENCE_MS = PATIENCE_S * 1000

pytestmark = [
    pytest.mark.prove,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium on this machine"),
]


@asynccontextmanager
async def served(board: Dashboard, app: App) -> AsyncIterator[str]:
    """The dashboard behind a port of this machine."""
    found = listening(ProbeAddress("127.0.0.1", 0))
    server = Server(board, WebSettings.of(app.config))
    serving = asyncio.ensure_future(server.run([found]))
    try:
        yield f"http://127.0.0.1:{found.getsockname()[1]}"
    finally:
        server.leave()
        await serving


@asynccontextmanager
async def chromium() -> AsyncIterator[Browser]:
    switches = [*SWITCHES, *(["--no-sandbox"] if os.geteuid() == 0 else [])]
    async with async_playwright() as play:
        browser = await play.chromium.launch(executable_path=CHROMIUM, args=switches)
        try:
            yield browser
        finally:
            await browser.close()


def watched(page: Page, trouble: list[str]) -> None:
    """Note whatever the browser complains of: errors of scripts, of the console, and what the policy forbids."""
    page.set_default_timeout(PATIENCE_MS)
    page.on("pageerror", lambda error: trouble.append(str(error)))
    page.on("console", lambda said: trouble.append(said.text) if said.type in ("error", "warning") else None)
    page.on("dialog", lambda dialog: trouble.append(f"a dialog: {dialog.message}"))


async def logged_in(context: BrowserContext, base: str, token: str, trouble: list[str]) -> Page:
    page = await context.new_page()
    watched(page, trouble)
    await page.goto(f"{base}/")
    await page.fill("input[name=token]", token)
    await page.click("main button[type=submit]")
    await page.wait_for_selector("#live")
    return page


async def seeded(app: App) -> str:
    """Jobs of all kinds, some of them hostile; the id of one that failed."""
    for number in range(30):
        await app.jobs["pages"].using(key=f"invoice-{number}", tags=["eu"]).asubmit(f"{number}.pdf")
    failed = await app.jobs["mail"].using(key="k-1", tags=["eu", "tenant:acme"]).asubmit("nobody@example.com")
    for each in HOSTILE:
        await cursed(app, each)
    await ended(app, failed.id)
    await app.jobs["pages"].using(delay_s=3600).asubmit("later.pdf")
    await app.client.apause_queue("documents", reason="provider outage")
    return failed.id


async def test_all_screens_are_clean_in_every_look(lite_app: App) -> None:
    token = (await lite_app.client.tokens.acreate("mara", scopes=["admin"])).token
    job_id = await seeded(lite_app)
    PICTURES.mkdir(parents=True, exist_ok=True)
    trouble: list[str] = []
    async with (
        asyncio.timeout(4 * PATIENCE_S),
        lite_app.worker(name="extract-1"),
        served(Dashboard(lite_app, read_only=False), lite_app) as base,
        chromium() as browser,
    ):
        (worker,) = await lite_app.client.workers.aregistered(state="alive")
        screens = {
            "overview": "/",
            "jobs": "/jobs?q=state%3Afailed",
            "job": f"/jobs/{job_id}",
            "why": f"/jobs/{job_id}/why",
            "queues": "/queues",
            "workers": "/workers",
            "worker": f"/workers/{worker.id}",
        }
        for scheme, size in (("light", DESKTOP), ("dark", DESKTOP), ("light", PHONE), ("dark", PHONE)):
            context = await browser.new_context(color_scheme=scheme, viewport=size, reduced_motion="reduce")  # type: ignore[arg-type]
            page = await logged_in(context, base, token, trouble)
            for name, path in screens.items():
                await page.goto(base + path)
                await page.wait_for_selector("h1")
                width = await page.evaluate("document.documentElement.scrollWidth")
                assert width <= size["width"], (name, scheme, width)
                await page.screenshot(path=PICTURES / f"{name}-{scheme}-{size['width']}.png", full_page=True)
            await context.close()

    assert trouble == []


async def test_a_page_is_live_pauses_and_is_worked_by_keys(lite_app: App) -> None:
    token = (await lite_app.client.tokens.acreate("mara", scopes=["operate"])).token
    trouble: list[str] = []
    board = Dashboard(lite_app, read_only=False, live_s=1.0)
    async with asyncio.timeout(4 * PATIENCE_S), served(board, lite_app) as base, chromium() as browser:
        page = await logged_in(await browser.new_context(viewport=DESKTOP), base, token, trouble)
        await page.keyboard.press("g")
        await page.keyboard.press("j")
        await page.wait_for_url("**/jobs")
        handle = await lite_app.asubmit_by_name("pages", {"path": "a.pdf"})
        await page.wait_for_selector(f"a[href='/jobs/{handle.id}']")  # it came by itself

        await page.keyboard.press("p")
        await expect(page.locator("#pause")).to_have_attribute("aria-pressed", "true")
        hidden = await lite_app.asubmit_by_name("pages", {"path": "b.pdf"})
        await page.keyboard.press("p")
        await page.wait_for_selector(f"a[href='/jobs/{hidden.id}']")

        await page.keyboard.press("/")
        await page.keyboard.type(f"id:{handle.id}")
        await page.keyboard.press("Enter")
        await page.wait_for_selector(".token")
        await page.keyboard.press("j")
        await page.keyboard.press("Enter")
        await page.wait_for_url(f"**/jobs/{handle.id}")
        await page.click("summary:has-text('Cancel')")
        await page.fill("details[open] input[name=reason]", "not needed")
        await page.click("details[open] button[type=submit]")
        await page.wait_for_selector(".told:has-text('The job is cancelled')")
        found = await lite_app.client.aget(handle.id)

    assert found.state is State.CANCELLED
    assert [
        each.actor for each in await lite_app.client.atimeline(handle.id) if each.kind == "cancelled"
    ] == ["mara"]
    assert trouble == []


async def test_another_site_presses_no_button_and_frames_no_page(lite_app: App, tmp_path: Path) -> None:
    """A page on another port of this machine, in the browser in which an administrator is logged in."""
    token = (await lite_app.client.tokens.acreate("mara", scopes=["admin"])).token
    handle = await lite_app.asubmit_by_name("pages", {"path": "a.pdf"})
    async with (
        asyncio.timeout(4 * PATIENCE_S),
        served(Dashboard(lite_app, read_only=False), lite_app) as base,
        elsewhere(
            f"<form method=post action={base}/jobs/{handle.id}/cancel><button>press</button></form>"
            f"<iframe src={base}/></iframe>"
        ) as other,
        chromium() as browser,
    ):
        context = await browser.new_context()
        await logged_in(context, base, token, [])
        page = await context.new_page()
        page.set_default_timeout(PATIENCE_MS)
        await page.goto(other)
        framed = page.frames[1]
        inside = await framed.content()
        sent = await page.evaluate(
            "url => fetch(url, {method: 'POST', mode: 'no-cors', credentials: 'include', body: 'a=1', "
            "headers: {'content-type': 'application/x-www-form-urlencoded'}}).then(a => a.type, () => 'refused')",
            f"{base}/jobs/{handle.id}/cancel",
        )
        await page.click("button")
        await page.wait_for_load_state()
        refused = await page.content()
        found = await lite_app.client.aget(handle.id)

    assert "Problems" not in inside and sent == "refused"
    assert "FR-920" in refused or "nobody is logged in" in refused
    assert found.state is State.QUEUED


@asynccontextmanager
async def elsewhere(content: str) -> AsyncIterator[str]:
    """A site of somebody else."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        page = content.encode()
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\nconnection: close\r\n\r\n" + page)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    places: Sequence[tuple[str, int]] = [each.getsockname() for each in server.sockets]
    async with server:
        yield f"http://localhost:{places[0][1]}/"
