"""What a job's types call secret is hidden on the pages, and kept whole in the row."""

from __future__ import annotations

from typing import Annotated, TypedDict

import httpx

from fencerow import App
from fencerow.cli.developing import _made
from fencerow.payloads import Secret
from fencerow.web.dashboard.redacting import text_without_secrets
from tests.web.dashboard.visiting import Visits


class Account(TypedDict):
    owner: str
    code: Annotated[str, Secret]


async def test_types_say_what_is_secret_in_arguments_results_and_schedules(
    lite_app: App, visits_lite: Visits
) -> None:
    async def open_account(owner: str, code: Annotated[str, Secret]) -> Account:
        return {"owner": owner, "code": code[::-1]}

    job = lite_app.job(name="open_account")(open_account)
    handle = await job.asubmit("ada", "s3cr3t")
    async with lite_app.worker():
        await handle.aresult()
    page = await visits_lite.see(f"/jobs/{handle.id}")

    assert "s3cr3t" not in page.text and "t3rc3s" not in page.text
    assert page.text.count("hidden, 6 characters") == 2 and '"owner": "ada"' in page.text
    record = await lite_app.client.aget(handle.id)
    assert (record.args["code"], record.result["code"]) == ("s3cr3t", "t3rc3s")


async def test_the_dashboard_of_dev_knows_the_types_of_the_application(lite_app: App) -> None:
    async def open_account(code: Annotated[str, Secret]) -> None: ...

    job = lite_app.job(name="open_account")(open_account)
    handle = await job.asubmit("s3cr3t")
    app, board = _made(lite_app.config, lite_app.jobs)
    async with (
        app,
        httpx.AsyncClient(transport=httpx.ASGITransport(board), base_url="http://127.0.0.1") as client,
    ):
        page = await Visits(client).see(f"/jobs/{handle.id}")
        await board.aclose()

    assert "s3cr3t" not in page.text and "hidden, 6 characters" in page.text


def test_a_long_word_is_looked_through_once() -> None:
    """A result of a million letters held the dashboard of all visitors for hours."""
    long = "x" * 1_000_000

    assert text_without_secrets(long) == long
    assert (
        text_without_secrets(f"{long}postgres://ada:pa55@db/app") == f"{long}postgres://ada:(hidden)@db/app"
    )
    assert text_without_secrets("Bearer abc") == "Bearer (hidden)"
