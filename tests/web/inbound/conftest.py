"""An app that takes webhooks of three senders, on a database of each kind, and who sends them."""

from __future__ import annotations

from collections.abc import AsyncIterator

import httpx
import pytest

from fencerow import App
from fencerow.web import GitHub, InboundWebhook, StandardWebhooks, Stripe, receive_webhooks
from fencerow.web.gateway.asgi import Gateway
from tests.web.gateway.conftest import calling, url  # noqa: F401 (a fixture)
from tests.web.inbound.senders import GITHUB, STANDARD, STRIPE


@pytest.fixture(autouse=True)
def _secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"OF_GITHUB": GITHUB, "OF_STRIPE": STRIPE, "OF_OTHERS": STANDARD}.items():
        monkeypatch.setenv(name, value)


def declare(app: App) -> None:
    """Three senders, whose webhooks one job takes."""

    @app.job(name="take", queue="hooks")
    async def take(webhook: InboundWebhook) -> str:
        return f"{webhook.kind} of {webhook.hook}"

    receive_webhooks(app, "github", GitHub("OF_GITHUB"), take, headers=["X-GitHub-Hook-ID"])
    receive_webhooks(app, "stripe", Stripe("OF_STRIPE"), take)
    receive_webhooks(app, "others", StandardWebhooks("OF_OTHERS"), take)


@pytest.fixture
async def app(url: str) -> AsyncIterator[App]:  # noqa: F811
    async with App(url) as made:
        declare(made)
        yield made


@pytest.fixture
async def http(app: App) -> AsyncIterator[httpx.AsyncClient]:
    """Each answer must be one that the gateway's own OpenAPI document tells of."""
    async with calling(Gateway(app)) as made:
        yield made
