"""Endpoints that an application names: made when a worker starts, changed with the code, never against a person."""

from __future__ import annotations

import dataclasses
import logging
from typing import Any

import pytest

from fencerow import App
from fencerow.core.errors import DeclarationError, InvalidInput
from fencerow.errors import WebhookUrlRefused
from fencerow.testing import drain
from fencerow.web import WebhookTo, told_to
from tests.events.conftest import url_of
from tests.kit.jobs import AnyEngine
from tests.web.webhooks.stage import Receiver, app_at, hooks_of, is_signed


def declared(engine: AnyEngine, receiver: Receiver, **more: Any) -> App:
    endpoint = dataclasses.replace(WebhookTo("shop", receiver.url), **more)
    return app_at(url_of(engine), receiver.url, endpoints=[endpoint])


def test_a_job_that_names_the_endpoint_is_told_there_and_no_other_is(
    engine: AnyEngine, receiver: Receiver
) -> None:
    with declared(engine, receiver, named=True) as app:
        drain(app)
        send = app.jobs["send"]
        ids = [
            send.using(tags=tags).submit("ada").id
            for tags in ([told_to("shop"), "eu"], ["eu"], [told_to("shops")], [])
        ]
        drain(app)
        secret = hooks_of(app).secrets("shop")[0]

    assert [each.document["data"]["job"] for each in receiver.got] == ids[:1]
    assert is_signed(receiver.got[0], secret)


def test_it_is_made_once_and_follows_its_declaration(engine: AnyEngine, receiver: Receiver) -> None:
    declarations: list[tuple[dict[str, Any], int]] = [
        ({}, 1), ({}, 1), ({"jobs": ["send"], "timeout_s": 30}, 2), ({"timeout_s": 30}, 3),
    ]  # fmt: skip
    for more, version in declarations:
        with declared(engine, receiver, **more) as app:
            drain(app)
            (found,) = hooks_of(app).known()
        assert (found.version, found.jobs) == (version, ("send",) if "jobs" in more else None)
        assert found.changed_by == "the application"


def test_what_a_person_has_changed_stays_and_the_log_says_so(
    engine: AnyEngine, receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    with declared(engine, receiver) as app:
        drain(app)
        hooks_of(app).change("shop", timeout_s=60)
        hooks_of(app).disable("shop", reason="moves")
    with (
        declared(engine, receiver, timeout_s=30) as app,
        caplog.at_level(logging.WARNING, "fencerow.webhooks"),
    ):
        drain(app)
        found = hooks_of(app).get("shop")

    assert (found.timeout_s, found.state) == (60.0, "disabled")
    assert "the endpoint shop is not as it is declared" in caplog.text


def test_a_wrong_declaration_is_refused_where_the_app_is_made(engine: AnyEngine, receiver: Receiver) -> None:
    wrong: list[tuple[list[WebhookTo], type[Exception]]] = [
        ([WebhookTo("shop", receiver.url)] * 2, DeclarationError),
        ([WebhookTo("shop", receiver.url, named=True, tags=["eu"])], DeclarationError),
        ([WebhookTo("shop", "https://10.0.0.1/")], WebhookUrlRefused),
        ([WebhookTo("shop", receiver.url, timeout_s=0.5)], InvalidInput),
        ([WebhookTo("s" * 93, receiver.url, named=True)], InvalidInput),
    ]
    for endpoints, kind in wrong:
        with pytest.raises(kind):
            app_at(url_of(engine), receiver.url, endpoints=endpoints)
