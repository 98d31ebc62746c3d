"""The admin and the dashboard of examples/django in a real browser, beside a real server and a real worker."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import httpx
import pytest
from playwright.async_api import Page, expect

from fencerow.supervisor.probes import ProbeAddress, listening
from tests.kit.pace import PATIENCE_S
from tests.web.dashboard.test_browser import CHROMIUM, PATIENCE_MS, chromium, watched
from tests.whole.django_shop.conftest import SHOP, manage

PICTURES = SHOP.parent.parent / ".fencerow" / "django"
SETUP = """
import django; django.setup()
from django.contrib.auth.models import User
User.objects.create_superuser("ann", password="secret")
"""

pytestmark = [
    pytest.mark.prove,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium on this machine"),
    pytest.mark.skipif(
        find_spec("django.tasks") is None and find_spec("django_tasks") is None,
        reason="this Django has no tasks, and django-tasks is not installed",
    ),
]


@contextmanager
def running(environment: dict[str, str], *command: str, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    with log.open("wb") as out:
        process = subprocess.Popen(
            [sys.executable, *command], env=environment, stdout=out, stderr=out, cwd=SHOP
        )
        try:
            yield process
        finally:
            process.terminate()
            process.wait(PATIENCE_S)


async def test_its_admin_in_a_browser(environment: dict[str, str], tmp_path: Path) -> None:
    """A receipt is found, cancelled and revived there, then it fails; the dashboard takes the same login."""
    migrated = await asyncio.to_thread(manage, environment, "migrate")
    assert migrated.returncode == 0, migrated.stderr
    made = await asyncio.to_thread(
        subprocess.run, [sys.executable, "-c", SETUP], env=environment, check=False, cwd=SHOP
    )
    assert made.returncode == 0
    with listening(ProbeAddress("127.0.0.1", 0)) as found:
        port = found.getsockname()[1]
    base = f"http://127.0.0.1:{port}"
    server = (
        "-m",
        "uvicorn",
        "project.asgi:application",
        "--port",
        str(port),
        "--timeout-graceful-shutdown",
        "1",
    )
    worker = (str(SHOP / "manage.py"), "fencerow_worker", "--slots", "2")
    trouble: list[str] = []
    with running(environment, *server, log=tmp_path / "server.log"):
        transport = httpx.AsyncHTTPTransport(retries=60)
        async with httpx.AsyncClient(base_url=base, transport=transport, timeout=PATIENCE_S) as client:
            order = {"sku": "tent", "email": "down@example.org"}
            assert (await client.post("/orders/", data=order)).status_code == 202
        async with chromium() as browser:
            page = await (await browser.new_context()).new_page()
            watched(page, trouble)
            await page.route("**/favicon.ico", lambda route: route.fulfill(status=204))  # the shop has none
            await walked(page, base)
            with running(environment, *worker, log=tmp_path / "worker.log"):
                await expect(page.locator("main")).to_contain_text("MailIsDown", timeout=PATIENCE_MS)
            PICTURES.mkdir(parents=True, exist_ok=True)
            await page.goto(f"{base}/admin/fencerow/job/")
            await page.screenshot(path=PICTURES / "admin.png")
    assert trouble == []


async def walked(page: Page, base: str) -> None:
    """What a person does who looks after the shop."""
    await page.goto(f"{base}/fencerow/")
    assert "/admin/login/" in page.url
    await page.fill("input[name=username]", "ann")
    await page.fill("input[name=password]", "secret")
    await page.click("input[type=submit]")
    await page.wait_for_selector("#live")  # the dashboard, to which the login leads back
    await page.goto(f"{base}/admin/")
    await page.click("text=Jobs")
    await page.fill("input[name=name]", "shop.tasks.send_receipt")
    await page.click("input[type=submit][value=Search]")
    await page.click("#result_list tbody a")
    await expect(page.locator("h2", has_text="shop.tasks.send_receipt")).to_be_visible(timeout=PATIENCE_MS)
    await page.fill("input[name=reason]", "the address is wrong")
    await page.click("button[value=cancel]")
    await expect(page.locator(".messagelist")).to_contain_text("is cancelled", timeout=PATIENCE_MS)
    await page.goto(page.url)
    await expect(page.locator("table", has_text="cancelled").first).to_be_visible(timeout=PATIENCE_MS)
    await page.click("button[value=revive]")
    await expect(page.locator(".messagelist")).to_contain_text("is queued again", timeout=PATIENCE_MS)
    await page.click("text=In the dashboard")
    await expect(page.locator("main")).to_contain_text("shop.tasks.send_receipt", timeout=PATIENCE_MS)
