"""Webhooks through a client of the gateway: endpoints and deliveries, with the verbs of the library."""

from __future__ import annotations

import inspect
from datetime import UTC, datetime

import pytest

from fencerow import App
from fencerow.errors import EndpointConflict, EndpointNotFound, InvalidInput, WebhookUrlRefused
from fencerow.web.errors import NotAllowed
from fencerow.web.remote import RemoteClient, RemoteWebhooks
from fencerow.web.tokens.scope import Scope
from fencerow.web.webhooks.verbs import Webhooks
from tests.web.gateway.conftest import Door

URL = "https://93.184.216.34/hooks"


async def test_an_endpoint_is_made_changed_rotated_and_removed(lite_app: App, client: RemoteClient) -> None:
    hooks = client.webhooks
    made = await hooks.aadd("shop", URL, queues=["documents"], timeout_s=20)
    assert (made.endpoint.url, made.endpoint.queues, made.endpoint.timeout_s) == (URL, ["documents"], 20)
    assert await Webhooks(lite_app.client).asecrets("shop") == [made.secret]
    with pytest.raises(EndpointConflict):
        await hooks.aadd("shop", URL)
    with pytest.raises(WebhookUrlRefused):
        await hooks.aadd("inside", "https://10.0.0.1/")

    changed = await hooks.achange("shop", queues=None, version=made.endpoint.version)
    assert (changed.queues, changed.timeout_s) == (None, 20)
    with pytest.raises(EndpointConflict):
        await hooks.achange("shop", tags=["a"], version=made.endpoint.version)
    secret = await hooks.arotate("shop", overlap_s=60)
    assert await Webhooks(lite_app.client).asecrets("shop") == [secret, made.secret]
    with pytest.raises(EndpointConflict):
        await hooks.arotate("shop")
    assert [await hooks.aretire("shop"), await hooks.aretire("shop")] == [True, False]
    assert [await hooks.adisable("shop", reason="a move"), await hooks.aenable("shop")] == [True, True]
    assert [each.name for each in await hooks.aknown()] == [(await hooks.aget("shop")).name]
    await hooks.aremove("shop")
    with pytest.raises(EndpointNotFound):
        await hooks.aget("shop")


async def test_deliveries_are_listed_and_sent_once_more(
    lite_app: App, client: RemoteClient, door: Door
) -> None:
    hooks, since = client.webhooks, datetime.now(UTC)
    await hooks.aadd("shop", URL)
    assert await hooks.adeliveries("shop", state="failed", since=since, until=datetime.now(UTC)) == []
    assert await hooks.aattempts("shop", 1) == []
    assert await hooks.aredeliver("shop", state=None, since=since, dry_run=True) == 0
    with pytest.raises(InvalidInput, match="nothing says"):
        await hooks.aredeliver()
    with pytest.raises(EndpointNotFound):
        await hooks.aredeliver("nobody")
    door.only(Scope.READ, Scope.OPERATE, queues={"documents"})
    with pytest.raises(NotAllowed):
        await hooks.aknown()


def test_it_has_the_verbs_of_the_librarys_webhooks() -> None:
    names = ("add", "known", "get", "change", "rotate", "retire", "enable", "disable", "remove", "deliveries")
    for name in (*names, "attempts", "redeliver"):
        own, other = (inspect.signature(getattr(kind, name)) for kind in (RemoteWebhooks, Webhooks))
        assert set(own.parameters) == {each for each in other.parameters if each not in ("before", "behind")}
        assert callable(getattr(RemoteWebhooks, f"a{name}"))
