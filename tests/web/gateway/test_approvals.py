"""The page on which a person answers: opened by anybody who has the address, used once, and safe to open."""

from __future__ import annotations

import httpx

from fencerow import App
from tests.web.gateway.conftest import Door


async def test_a_person_opens_the_page_and_answers_once(
    app: App, http: httpx.AsyncClient, door: Door
) -> None:
    job_id = (await app.asubmit_by_name("pages", {"path": "a.pdf"}, delay_s=600)).id
    asks = "Pay <b>500</b>\nto Ada?"
    made = await app.client.aapproval(job_id, "approved", asks, base_url="http://127.0.0.1")
    door.grant = None  # nobody has logged in

    for method in ("GET", "HEAD"):
        assert (await http.request(method, made.address)).status_code == 200
    page = await http.get(made.address)
    assert "Pay &lt;b&gt;500&lt;/b&gt;<br>" in page.text and page.text.count("<form") == 2
    assert "form-action 'self'" in page.headers["content-security-policy"]
    assert "default-src 'none'" in page.headers["content-security-policy"]
    assert page.headers["cache-control"] == "no-store" and page.headers["referrer-policy"] == "no-referrer"
    assert await app.client.asignals(job_id) == []

    assert (await http.post(made.address)).status_code == 405
    done = await http.post(f"{made.address}/yes", data={})
    assert done.status_code == 200 and "yes" in done.text
    again = await http.post(f"{made.address}/no")
    assert again.status_code == 410 and "FR-971" in again.text and "answered before with yes" in again.text
    assert (await http.get(made.address)).status_code == 410
    altered = await http.post(f"{made.address[:-3]}AAA/yes")
    assert altered.status_code == 404 and "FR-970" in altered.text

    (sent,) = await app.client.asignals(job_id)
    assert sent.data["yes"] is True
    entries = [each for each in await app.client.audit.aentries(target=job_id) if each.verb == "answered"]
    assert [(each.person, each.via, each.detail) for each in entries] == [
        ("an address", "http", {"answer": True})
    ]
    assert made.address.rpartition("/")[2] not in str(await app.client.audit.aentries())
