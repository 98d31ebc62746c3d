"""What a body has, and of whom: large results, jobs that leave no row, cancels, seals; who needs the extra."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path

import pytest

from fencerow import App
from fencerow.errors import DeclarationError, MissingExtra
from fencerow.payloads import FolderStore, Seal
from fencerow.testing import drain
from fencerow.web import deliver_webhooks
from fencerow.web.webhooks.body import RESULT_BYTES_MAX
from tests.events.conftest import url_of
from tests.kit.jobs import AnyEngine
from tests.web.webhooks.stage import Receiver, app_at, end, hooks_of


def test_a_result_is_told_if_it_is_asked_for_and_small(app: App, receiver: Receiver) -> None:
    hooks = hooks_of(app)
    hooks.add("with", receiver.url + "/with", with_result=True)
    hooks.add("without", receiver.url + "/without")

    end(app, "a" * RESULT_BYTES_MAX)

    told = {each.path.rpartition("/")[2]: each.document["data"] for each in receiver.got}
    assert told["with"]["result_left_out"] == "too_large" and "result" not in told["with"]
    assert "result" not in told["without"] and "result_left_out" not in told["without"]


def test_a_job_that_leaves_no_row_is_told_with_what_its_event_has(app: App, receiver: Receiver) -> None:
    hooks_of(app).add("shop", receiver.url, with_result=True)
    done = app.jobs["send"].using(ephemeral=True, key="k").submit("ada").id
    drain(app)

    (got,) = receiver.got
    data = got.document["data"]
    assert (data["job"], data["key"], data["result"]) == (done, "k", "sent to ada")


def test_a_cancel_is_told_with_its_tags_and_headers(app: App, receiver: Receiver) -> None:
    hooks_of(app).add("shop", receiver.url, events=["cancelled"])
    handle = app.jobs["send"].using(headers={"correlation-id": "c7"}, tags=["eu"]).submit("ada")
    app.client.cancel(handle.id)
    end(app, "bob")

    (got,) = receiver.got
    assert got.document["type"] == "job.cancelled"
    assert (got.document["data"]["headers"], got.document["data"]["tags"]) == (
        {"correlation-id": "c7"},
        ["eu"],
    )


def test_an_app_that_seals_its_payloads_delivers_and_redelivers(
    engine: AnyEngine, receiver: Receiver
) -> None:
    with app_at(url_of(engine), receiver.url, seal=Seal({"k1": os.urandom(32)}, marks=os.urandom(32))) as app:
        hooks = hooks_of(app)
        hooks.add("shop", receiver.url, with_result=True)
        end(app, "ada")
        hooks.redeliver("shop", state="delivered")
        drain(app)

    assert [each.document["data"]["result"] for each in receiver.got] == ["sent to ada"] * 2
    assert len({each.id for each in receiver.got}) == 1


def test_a_result_outside_the_database_is_left_out(
    engine: AnyEngine, receiver: Receiver, tmp_path: Path
) -> None:
    with app_at(url_of(engine), receiver.url, outside=FolderStore(tmp_path)) as app:
        hooks_of(app).add("shop", receiver.url, with_result=True)
        end(app, "a" * app.config.outside_bytes_min)

    (got,) = receiver.got
    assert got.document["data"]["result_left_out"] == "outside"


def test_it_is_said_once_and_with_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    app = App("sqlite:///never.db")
    deliver_webhooks(app)

    with pytest.raises(DeclarationError):
        deliver_webhooks(app)
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: None)
    with pytest.raises(MissingExtra):
        deliver_webhooks(App("sqlite:///never.db"))
