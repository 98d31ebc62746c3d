"""A client over HTTP that wants an answer within seconds: the result, a handle, or that it is not known."""

from __future__ import annotations

import socket

import pytest

from fencerow import App
from fencerow.errors import AnswerBusy, JobFailed
from fencerow.web import Answered, Later
from fencerow.web.remote import RemoteClient
from fencerow.web.remote import client as asking
from tests.kit.pace import PATIENCE_S
from tests.web.gateway.conftest import mail

PAGES = {"path": "a.pdf"}


async def test_the_result_if_it_comes_in_time_else_a_handle(
    lite_app: App, client: RemoteClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    lite_app.job(name="mail", queue="letters")(mail)
    with monkeypatch.context() as patch:
        patch.setattr(asking, "WAITS", 0.0)
        patch.setattr(asking, "RETURN_S", PATIENCE_S - 1)  # it waits a second, its answer may take long
        later = await client.aanswer("pages", PAGES, within_s=PATIENCE_S, key="a")
    assert isinstance(later, Later)
    async with lite_app.worker():
        found = await client.aanswer("pages", PAGES, within_s=PATIENCE_S, key="a")
        with pytest.raises(JobFailed, match="nobody is called x") as caught:
            await client.aanswer("mail", {"to": "x"}, within_s=PATIENCE_S, attempts_max=1)

    assert isinstance(found, Answered)
    assert (found.id, found.result) == (later.handle.id, {"path": "a.pdf", "pages": 3})
    assert caught.value.error.type == "ValueError"


async def test_a_gateway_that_does_not_answer_is_given_up_in_time_under_an_id() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        async with RemoteClient(url, token="t") as client:
            with pytest.raises(AnswerBusy) as caught:
                await client.aanswer("pages", PAGES, within_s=0.2)
    assert len(caught.value.job_ids) == 1
