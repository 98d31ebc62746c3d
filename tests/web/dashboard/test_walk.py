"""A walk through every page in a real browser, on a database of 100,000 jobs, with axe looking at each page.

axe-core (MPL-2.0) does not come with us: `npm pack axe-core`, and AXE_MIN_JS=/path/to/axe.min.js. Without it the
pages are walked, and what axe judges (labels, contrast, order) is skipped, which the test says.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import sqlite3
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Browser, Page, ViewportSize

from fencerow import App, Job
from fencerow.core.model.ids import new_id
from fencerow.guards.mutex import mutexes
from fencerow.guards.mutex.mutexes import MutexTaker
from fencerow.limits import Limit, Rate
from fencerow.relay import relays
from fencerow.turns import handing
from fencerow.web.dashboard.asgi import Dashboard
from fencerow.web.dashboard.screens import all_screens
from fencerow.web.tallies.operations import HookCounts, note_hooks
from tests.kit.pace import PATIENCE_S
from tests.web.dashboard.crowd import crowd
from tests.web.dashboard.test_browser import CHROMIUM, DESKTOP, PHONE, PICTURES, chromium, logged_in, served
from tests.web.dashboard.test_events import parking
from tests.web.dashboard.test_relays import known as relayed
from tests.web.gateway.conftest import ended

JOBS = 100_000
LONG = "a-name-that-somebody-has-chosen-without-thinking-of-phones-or-of-tables-" + "x" * 30
# Attempts of some of the queued jobs: two are late, the others wait.
WORKED = """
INSERT INTO fencerow_worked_attempts
    (job_id, attempt, digest, sent_at, failures, until, give_up_at, silent_s, deferred, look_at)
SELECT id, 1, 'x', run_at, 0, run_at, run_at + 7200000000, 60, 1,
       run_at + CASE WHEN row_number() OVER (ORDER BY id) < 3 THEN 0 ELSE 7200000000 END
FROM fencerow_jobs WHERE state = 'queued' AND queue = 'ocr' LIMIT 30
"""
MISSING = "/nowhere"
AXE = os.environ.get("AXE_MIN_JS", "")
AXE_VERSION = re.compile(r"axe v([0-9.]+)")
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"]
LIVE_S = 600.0  # no page changes under the pointer: on a slow machine nothing could be pressed
SHEETS_OPENED = 3  # of each page: those of a table are alike
LOOKS = (("light", DESKTOP), ("dark", DESKTOP), ("light", PHONE), ("dark", PHONE))

pytestmark = [
    pytest.mark.prove,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium on this machine"),
]


async def furnished(app: App, path: Path) -> Mapping[str, str]:
    """Something on every screen; returns the pages that only a name or an id leads to."""
    await app.client.apaused_queues()  # an app makes its tables when it is first used
    await app.client.apause_queue("ocr", reason="provider outage")
    await app.client.limits.adefine(Limit("github", at_once=4, rate=Rate(100, 60, burst=5)))
    for file in ("first.pdf", "second.pdf"):
        await app.jobs["pages"].using(exclusive="tenant:acme", queue="ocr").asubmit(file)
    await app.engine.arun(handing.hand_over())
    await app.engine.arun(mutexes.make(MutexTaker("report:7", new_id(), 3600.0, "h1", 7, "billing")))
    for name, cron in (("nightly", "0 3 * * *"), ("poll", "*/5 * * * *")):
        await app.schedules.aput(name, app.jobs["pages"].call("a.pdf"), cron=cron, tz="Europe/Berlin")
    await parking(app)
    failed = await app.jobs["mail"].using(key="k-1", tags=["eu"]).asubmit("nobody@example.com")
    done = await app.jobs["pages"].asubmit("invoice.pdf")
    later = await app.jobs["pages"].using(delay_s=3600, tags=["eu", "tenant:acme"]).asubmit("later.pdf")
    async with app.worker(name="first"):
        for each in (failed.id, done.id):
            await ended(app, each)
    await app.schedules.arun("nightly")
    flows = await flowed(app)
    # Last: the workers that ran what is above pass no crowd.
    await asyncio.to_thread(crowd, path, finished=JOBS, queued=400)
    await related(app)
    return {
        **flows,
        "queue": "/queues/one?name=extract",
        "queue-empty": "/queues/one?name=nothing",
        "overview-24h": "/?range=24h",
        "overview-7d": "/?range=7d",
        "jobs-failed": "/jobs?q=state%3Afailed+queue%3Amail",
        "job-failed": f"/jobs/{failed.id}",
        "job-done": f"/jobs/{done.id}",
        "job-later": f"/jobs/{later.id}",
        "job-why": f"/jobs/{later.id}/why",
        "schedule": "/schedules/one?name=nightly",
        "schedule-often": "/schedules/one?name=poll",
        "key": "/turns/key?key=tenant%3Aacme",
        "limit": "/turns/limit?name=github",
        "group": "/events/group?name=billing",
        "relay": "/relays/one?name=orders-in",
        "missing": MISSING,
    }


async def related(app: App) -> None:
    """Questions for people, relays, hooks and attempts worked over HTTP; some have long names, some are in trouble."""
    for n, asks in enumerate(
        (f"Pay 500 EUR to {LONG}?", "Publish the report of November?\nIt has 112 pages.")
    ):
        job = await app.jobs["pages"].using(delay_s=86_400).asubmit("asked.pdf")
        await app.client.aapproval(
            job.id, "approved", asks, base_url="https://jobs.example.com", expires_s=1800 + n * 86_400
        )
    await relayed(app, "orders-in")
    await relayed(
        app, LONG, place=f"redis://{LONG}/0 stream {LONG}", bad=f"at `$.{LONG}`: a number is expected"
    )
    await app.engine.arun(relays.know("events-out", "out", "kafka broker-1:9092 topic events"))
    await app.engine.arun(relays.pause("events-out", "the broker is moved"))
    refused = HookCounts(
        "stripe", 12, 4000.0, refused=3, refused_s=30.0, refusal="no signature is of a secret of this hook"
    )
    await app.engine.arun(note_hooks([HookCounts("github", 4_812, 12.0, 7, 300.0), refused]))
    path = (app.config.url or "").removeprefix("sqlite:///")
    with sqlite3.connect(path) as connection:
        connection.execute(WORKED)
    connection.close()


async def flowed(app: App) -> Mapping[str, str]:
    """Flows at several points of their way, and jobs that remember steps and wait; the pages of some of them."""
    app.job(name="order", queue="orders")(order)
    flow = app.flow("case-2291")
    split = flow.add("split_pdf", app.jobs["pages"].call("case.pdf"))
    parts = [
        flow.add(f"extract {n}", app.jobs["pages"].call(f"{n}.pdf"), needs=[split])
        for n in ("1-6", "7-12", "13-18")
    ]
    broken = flow.add("make_preview", app.jobs["mail"].call("nobody"), needs=[split])
    merge = flow.add("merge_text", app.jobs["order"].call("visa"), needs=parts, stage=True)
    flow.add("add_to_gallery", app.jobs["pages"].call("gallery"), needs=[broken])
    both = [
        flow.add(name, app.jobs["pages"].call(name), needs=[merge]) for name in ("summarise", "index_search")
    ]
    flow.add("deliver_webhook", app.jobs["pages"].call("hook"), needs=both, after=[split], stage=True)
    flow.on_failed(app.jobs["pages"].call("told"))
    flow.on_succeeded(app.jobs["pages"].call("praised"))
    handle = await flow.asubmit()
    wide = app.flow("wide")
    scans = [wide.add(f"scan {n}", app.jobs["pages"].call(f"{n}.tif")) for n in range(130)]
    wide.add("join", app.jobs["order"].call("visa"), needs=scans)
    large = await wide.asubmit()
    for name in ("nightly", "weekly"):
        done = app.flow(name)
        done.add("only", app.jobs["pages"].call("a.pdf"))
        await done.asubmit()
    waits, over = [await app.jobs["order"].asubmit("visa") for _ in range(2)]
    await app.client.asignal(over.id, "approved", {"by": "ada"})
    async with app.worker(queues=["documents", "letters", "orders"]):
        await app.client.await_ended(over.id)
        while len(await app.client.awaits(signal="approved")) < 2:
            await asyncio.sleep(0.05)
    await app.client.asignal(waits.id, "paid", {"amount": 42})
    merged = await handle.ajob(merge)
    return {
        "flow": f"/flows/{handle.id}",
        "flow-failed": f"/flows/{handle.id}?state=failed",
        "flow-large": f"/flows/{large.id}",
        "flows-failed": "/flows?state=failed",
        "job-waits": f"/jobs/{waits.id}",
        "job-waits-why": f"/jobs/{waits.id}/why",
        "job-steps": f"/jobs/{over.id}",
        "job-flow": f"/jobs/{merged.id}",
    }


async def order(job: Job, card: str) -> str:
    """Remembers what it has done, and waits for a person."""
    await job.step("charge", charge, card)
    await job.sleep(0.01)
    await job.step("pack", charge, card)
    await job.wait_for("approved", timeout_s=6 * 86_400)
    return "sent"


async def charge(card: str) -> dict[str, str]:
    return {"paid": "12.40 EUR", "card": card, "token": "tok_1Nv0FGQ9RKHgCVdK"}


async def judged(page: Page) -> list[dict[str, Any]]:
    """What axe finds wrong with a page, how grave it is, and where."""
    found: dict[str, Any] = await page.evaluate(
        "tags => axe.run(document, {runOnly: {type: 'tag', values: tags}})", RULES
    )
    return [
        {
            "rule": each["id"],
            "impact": each["impact"],
            "at": node["html"][:160],
            "why": node["failureSummary"][:200],
        }
        for each in found["violations"]
        for node in each["nodes"][:3]
    ]


async def opened(page: Page, width: int) -> list[str]:
    """Each sheet that asks is opened, and must stand within the page; what does not."""
    wrong = []
    sheets = page.locator("main details.asks")
    for place in range(min(await sheets.count(), SHEETS_OPENED)):
        await sheets.nth(place).locator("summary").click()
        box = await sheets.nth(place).locator("button[type=submit]").bounding_box()
        if box is None or box["x"] < 0 or box["x"] + box["width"] > width:
            wrong.append(f"{await sheets.nth(place).inner_text()}: {box}")
        await page.keyboard.press("Escape")
    return wrong


@dataclass
class Walk:
    """Every page, looked at in one way after the other; what is wrong with each."""

    base: str
    token: str
    axe: str
    places: Mapping[str, str]
    wrong: list[str] = field(default_factory=list)
    trouble: list[str] = field(default_factory=list)
    found: list[dict[str, Any]] = field(default_factory=list)

    async def look(self, browser: Browser, scheme: str, size: ViewportSize) -> None:
        """All pages in one scheme and one size."""
        context = await browser.new_context(color_scheme=scheme, viewport=size, reduced_motion="reduce")  # type: ignore[arg-type]
        page = await logged_in(context, self.base, self.token, self.trouble)
        for name, path in self.places.items():
            await self.page(page, f"{name}-{scheme}-{size['width']}", path, size["width"])
        await context.close()

    async def page(self, page: Page, look: str, path: str, width: int) -> None:
        answer = await page.goto(self.base + path)
        await page.wait_for_selector("h1")
        status = None if answer is None else answer.status
        if status != (404 if path == MISSING else 200):
            self.wrong.append(f"{look}: {status}")
        if await page.evaluate("document.documentElement.scrollWidth") > width:
            self.wrong.append(f"{look}: wider than its window")
        await page.screenshot(path=PICTURES / f"{look}.png", full_page=True)
        if self.axe:
            await page.evaluate(self.axe)
            self.found += [{"look": look, **each} for each in await judged(page)]
        self.wrong += [f"{look}: {each}" for each in await opened(page, width)]

    def kept(self) -> None:
        """What axe found stands beside the pictures."""
        told: dict[str, Any] = {
            "axe": AXE_VERSION.findall(self.axe[:100]),
            "rules": RULES,
            "looks": [f"{scheme}, {size['width']} px" for scheme, size in LOOKS],
        }
        told |= {"pages": dict(self.places), "found": self.found}
        (PICTURES / "axe.json").write_text(json.dumps(told, indent=1), "utf-8")


async def test_every_page_is_clean_readable_and_within_its_window(lite_app: App, sqlite_path: Path) -> None:
    axe = await asyncio.to_thread(Path(AXE).read_text, "utf-8") if AXE else ""
    if not axe:
        warnings.warn("AXE_MIN_JS is not set: labels, contrast and order are not judged", stacklevel=1)
    token = (await lite_app.client.tokens.acreate("mara", scopes=["admin"])).token
    places = dict(await furnished(lite_app, sqlite_path))
    places |= {each.name: each.path for each in all_screens() if each.section is not None}
    PICTURES.mkdir(parents=True, exist_ok=True)
    async with (
        asyncio.timeout(20 * PATIENCE_S),
        lite_app.worker(name="extract-1", queues=["documents", "letters", "ocr"]),
        served(Dashboard(lite_app, read_only=False, live_s=LIVE_S), lite_app) as base,
        chromium() as browser,
    ):
        (worker,) = await lite_app.client.workers.aregistered(state="alive")
        walk = Walk(base, token, axe, places | {"worker": f"/workers/{worker.id}"})
        try:
            await asyncio.gather(*(walk.look(browser, scheme, size) for scheme, size in LOOKS))
        finally:
            walk.kept()

    assert (walk.wrong, walk.found) == ([], [])
    # A page that is not found is told by the console, too; nothing else may be.
    assert [each for each in walk.trouble if "404" not in each] == []


PRESSES = (
    ("/queues", "ocr", "Resume", "Queue ocr goes on"),
    ("/queues", "ocr", "Pause", "Queue ocr is paused"),
    ("/schedules", "nightly", "Run now", "has submitted 1 job"),
    ("/schedules", "nightly", "Pause", "Schedule nightly is paused"),
    ("/schedules", "nightly", "Resume", "fires again"),
)


async def test_every_kind_of_button_is_pressed_in_the_browser(lite_app: App, sqlite_path: Path) -> None:
    token = (await lite_app.client.tokens.acreate("mara", scopes=["admin"])).token
    await lite_app.asubmit_by_name("pages", {"path": "a.pdf"}, queue="ocr")
    await lite_app.client.apause_queue("ocr")
    await lite_app.schedules.aput("nightly", lite_app.jobs["pages"].call("a.pdf"), cron="0 3 * * *")
    trouble: list[str] = []
    async with (
        asyncio.timeout(6 * PATIENCE_S),
        served(Dashboard(lite_app, read_only=False), lite_app) as base,
        chromium() as browser,
    ):
        page = await logged_in(await browser.new_context(viewport=PHONE), base, token, trouble)
        for path, row, word, told in PRESSES:
            await page.goto(base + path)
            place = page.locator("tr", has_text=row).first
            sheet = place.locator("details.asks", has=page.locator(f"summary:has-text('{word}')"))
            if await sheet.count():
                await sheet.locator("summary").click()
                await sheet.locator("input[name=reason]").fill("by hand")
                await sheet.locator("button[type=submit]").click()
            else:
                await place.locator(f"button:has-text('{word}')").click()
            await page.wait_for_selector(f".told:has-text('{told}')")

    assert trouble == []
    people = {each.person for each in await lite_app.client.audit.aentries()}
    assert "mara" in people


async def test_a_picture_tells_exact_values_to_the_pointer_and_to_the_arrow_keys(lite_app: App) -> None:
    token = (await lite_app.client.tokens.acreate("mara", scopes=["read"])).token
    await lite_app.asubmit_by_name("pages", {"path": "a.pdf"})
    trouble: list[str] = []
    async with (
        asyncio.timeout(4 * PATIENCE_S),
        served(Dashboard(lite_app, live_s=0.5), lite_app) as base,
        chromium() as browser,
    ):
        page = await logged_in(await browser.new_context(viewport=DESKTOP), base, token, trouble)
        panel = page.locator("section[aria-labelledby=throughput-title]")
        await page.wait_for_selector("#throughput .uplot")
        idle = await panel.locator(".at").inner_text()
        await page.focus("#throughput .canvas")
        for _ in range(2):
            await page.keyboard.press("ArrowLeft")
        told = await panel.locator(".at").inner_text()
        await page.keyboard.press("Escape")  # the focus leaves, so the page is live again
        await page.evaluate(
            "new Promise(done => document.addEventListener('fencerow:shown', done, {once: true}))"
        )
        plots = await page.locator("#throughput .uplot").count()
        after = await panel.locator(".at").inner_text()

    assert (idle, after) == ("jobs a minute", "jobs a minute")
    assert told.endswith(" UTC")
    assert plots == 1  # that of before, in the new page
    assert trouble == []
