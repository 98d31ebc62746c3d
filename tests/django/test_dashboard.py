"""The dashboard beside Django's pages: who is staff gets in, others are led to the login or turned away."""

from __future__ import annotations

import httpx
import pytest
from asgiref.sync import sync_to_async
from django.core.asgi import get_asgi_application

from fencerow.django.dashboard import with_dashboard
from fencerow.django.following import DjangoApp
from fencerow.errors import InvalidDjangoSettings
from tests.django.test_admin import app, visitor, whole_file  # noqa: F401 (fixtures)


async def asked(path: str, *permissions: str, logged_in: bool = True) -> httpx.Response:
    cookies = {}
    if logged_in:
        made = await sync_to_async(visitor)(*permissions)
        cookies = {"sessionid": made.cookies["sessionid"].value}
    application = with_dashboard(get_asgi_application())
    transport = httpx.ASGITransport(application)
    async with httpx.AsyncClient(
        transport=transport, base_url="http://127.0.0.1", cookies=cookies
    ) as browser:
        return await browser.get(path)


async def test_staff_with_the_permission_sees_jobs(app: DjangoApp) -> None:  # noqa: F811
    job = await app.jobs["pay"].asubmit(1, "visa of Ada")
    answer = await asked(f"/fencerow/jobs/{job.id}", "view_job")

    assert answer.status_code == 200 and job.id in answer.text and "visa of" not in answer.text
    assert '"/fencerow/static/' in answer.text
    await app.aclose()


async def test_staff_without_it_is_turned_away(app: DjangoApp) -> None:  # noqa: F811
    assert (await asked("/fencerow/")).status_code in (401, 403)
    await app.aclose()


async def test_nobody_is_led_to_the_login_and_other_pages_are_djangos(app: DjangoApp) -> None:  # noqa: F811
    led = await asked("/fencerow/queues", logged_in=False)
    assert (led.status_code, led.headers["location"]) == (302, "/admin/login/?next=/fencerow/queues")
    assert (await asked("/fencerow", logged_in=False)).headers["location"] == "/fencerow/"
    assert (await asked("/fencerows", logged_in=False)).status_code == 404
    assert "Django" in (await asked("/admin/login/", logged_in=False)).text


def test_a_place_that_is_no_path_is_refused() -> None:
    with pytest.raises(InvalidDjangoSettings):
        with_dashboard(get_asgi_application(), at="fencerow")
