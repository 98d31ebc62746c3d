"""What a job's types call secret is hidden on the pages, and kept whole in the row."""

from __future__ import annotations

from typing import Annotated, TypedDict

from fencerow import App
from fencerow.payloads import Secret
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
