"""Bulk actions in a real browser: rows chosen by key, a press that goes on by itself, an address that never does."""

from __future__ import annotations

import asyncio

import pytest
from playwright.async_api import Page, expect

from fencerow import App
from fencerow.core.model.state import State
from fencerow.web.dashboard.asgi import Dashboard
from fencerow.web.dashboard.bulk import doing
from tests.kit.pace import PATIENCE_S
from tests.web.dashboard.test_browser import (
    CHROMIUM,
    DESKTOP,
    PATIENCE_MS,
    PHONE,
    PICTURES,
    chromium,
    logged_in,
    served,
)

pytestmark = [
    pytest.mark.prove,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium on this machine"),
]


async def pictured(page: Page, name: str) -> None:
    """Kept to be looked at; nothing is wider than the window."""
    await page.screenshot(path=PICTURES / f"{name}.png", full_page=True)
    assert await page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), name


async def test_rows_are_chosen_by_key_and_a_search_goes_on_by_itself(
    lite_app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doing, "BATCH", 2)
    monkeypatch.setattr(doing, "PRESS_S", -1.0)
    token = (await lite_app.client.tokens.acreate("mara", scopes=["admin"])).token
    await lite_app.asubmit_many(lite_app.jobs["pages"].call(f"{n}.pdf") for n in range(7))
    PICTURES.mkdir(parents=True, exist_ok=True)
    trouble: list[str] = []
    async with (
        asyncio.timeout(4 * PATIENCE_S),
        served(Dashboard(lite_app, read_only=False), lite_app) as base,
        chromium() as browser,
    ):
        context = await browser.new_context(viewport=DESKTOP, reduced_motion="reduce")
        page = await logged_in(context, base, token, trouble)
        await page.goto(f"{base}/jobs?q=queue%3Adocuments")
        await page.keyboard.press("j")
        await page.keyboard.press("x")
        await expect(page.locator("#chosen")).to_have_text("1 chosen", timeout=PATIENCE_MS)
        await pictured(page, "bulk-choose")
        await page.select_option("select[name=verb]", "cancel")
        await page.click("#choose button")
        await expect(page.locator("h1")).to_have_text("Cancel jobs", timeout=PATIENCE_MS)
        await pictured(page, "bulk-preview")
        await page.fill("input[name=reason]", "outage")
        await page.click("#bulk button[type=submit]")
        await expect(page.locator(".told").first).to_contain_text("1 cancelled", timeout=PATIENCE_MS)

        await page.goto(f"{base}/jobs/bulk?verb=cancel&q=queue%3Adocuments")
        await page.fill("input[name=reason]", "outage")
        await page.click("#bulk button[type=submit]")
        await expect(page.locator(".told").first).to_contain_text("6 cancelled", timeout=PATIENCE_MS)
        await pictured(page, "bulk-done")

        await lite_app.jobs["pages"].asubmit("later.pdf")
        rest = f"{base}/jobs/bulk?verb=cancel&q=queue%3Adocuments&below=ffffffff-ffff-7fff-bfff-ffffffffffff"
        await page.goto(rest)
        await page.wait_for_timeout(1_500)  # longer than a form of the tab's own waits before it goes on
        await context.close()
        narrow = await browser.new_context(viewport=PHONE, color_scheme="dark")
        page = await logged_in(narrow, base, token, trouble)
        for name, path in (
            ("bulk-choose", "/jobs?q=queue%3Adocuments"),
            ("bulk-preview", "/jobs/bulk?verb=revive&q=queue%3Adocuments"),
            ("migrations", "/migrations"),
            ("capacity", "/capacity"),
        ):
            await page.goto(base + path)
            await pictured(page, f"{name}-dark-phone")
        await narrow.close()

    assert not trouble
    (left,) = await lite_app.client.alist_jobs(states=[State.QUEUED])
    assert (await lite_app.client.aget(left.id)).args == {"path": "later.pdf"}
