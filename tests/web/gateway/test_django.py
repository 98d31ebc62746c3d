"""The gateway beside Django in one application."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette
from starlette.routing import Mount

from fencerow import App
from fencerow.web.gateway.asgi import Gateway
from tests.web.gateway.conftest import Door, calling


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Django's own ASGI application, with one page."""
    from django.conf import settings
    from django.core.asgi import get_asgi_application
    from django.http import HttpRequest, HttpResponse
    from django.test import override_settings
    from django.urls import path

    def page(request: HttpRequest) -> HttpResponse:
        return HttpResponse(f"Django has {request.path}")

    pages: Any = ModuleType("pages_of_django")
    pages.urlpatterns = [path("tasks-of-mine", page), path("", page)]
    monkeypatch.setitem(sys.modules, pages.__name__, pages)
    if not settings.configured:
        settings.configure(SECRET_KEY="x" * 50)
    with override_settings(ALLOWED_HOSTS=["127.0.0.1"], ROOT_URLCONF=pages.__name__, MIDDLEWARE=[]):
        yield get_asgi_application()


async def test_each_has_its_own_paths(lite_app: App, door: Door, site: Any) -> None:
    gateway = Gateway(lite_app, authorize=door)
    host = Starlette(routes=[Mount("/tasks", gateway), Mount("/", site)])
    inner = httpx.ASGITransport(host)
    async with (
        lite_app,
        calling(gateway, host, "/tasks") as http,
        httpx.AsyncClient(transport=inner, base_url="http://127.0.0.1") as browser,
    ):
        answer = await http.post("/tasks/v1/jobs", json={"job": "pages", "args": {"path": "a.pdf"}})
        found = await http.get(answer.headers["location"])
        pages = [(await browser.get(path)).text for path in ("/", "/tasks-of-mine")]
        missing = await http.get("/tasks/nothing")

    assert answer.headers["location"].startswith("/tasks/v1/jobs/")
    assert (found.status_code, found.json()["state"]) == (200, "queued")
    assert pages == ["Django has /", "Django has /tasks-of-mine"]
    assert missing.json()["code"] == "FR-872"
