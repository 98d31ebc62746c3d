"""Addresses of results: good for whoever has one, for one attempt, until they are over; and from the store itself."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest

from fencerow import App, Config
from fencerow.payloads import FolderStore, Sign
from fencerow.testing.clock import clock_of
from fencerow.web.gateway.asgi import Gateway
from fencerow.web.gateway.downloads import Ticket, signed
from fencerow.web.tokens.scope import Scope
from tests.web.gateway.conftest import Door, calling, ended, mail, pages

SECRET = "s" * 32


class Addressed(FolderStore):
    """A folder that gives addresses, as S3 does."""

    def address(self, name: str, expires_s: int) -> str:
        return f"https://store.example.com/{name}?expires={expires_s}"


@pytest.fixture
async def app(url: str, tmp_path: Path) -> AsyncIterator[App]:
    settings = Config(web_download_secret=SECRET, outside_bytes_min=1024)
    async with App(url, actor="ada", config=settings, outside=Addressed(tmp_path / "large")) as made:
        made.job(name="pages", queue="documents")(pages)
        made.job(name="mail", queue="letters")(mail)
        yield made


async def done(app: App, path: str = "a.pdf") -> str:
    job_id = (await app.asubmit_by_name("pages", {"path": path})).id
    await ended(app, job_id)
    return job_id


async def given(http: httpx.AsyncClient, job_id: str, **more: str | int) -> dict[str, Any]:
    answer = await http.get(f"/v1/jobs/{job_id}/download", params=more)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def test_whoever_has_the_address_reads_the_result_until_it_is_over(
    app: App, http: httpx.AsyncClient, door: Door
) -> None:
    job_id = await done(app)
    address = await given(http, job_id, expires_s=60)
    door.grant = None

    answer = await http.get(address["url"])
    assert (answer.status_code, answer.json()) == (200, {"path": "a.pdf", "pages": 3})
    assert (address["source"], answer.headers["cache-control"]) == ("gateway", "no-store")
    with closing(clock_of(app.engine)) as clock:
        await asyncio.to_thread(clock.advance, 61)
        over = await http.get(address["url"])
    assert (over.status_code, over.json()["code"]) == (410, "FR-887")


async def test_an_address_that_was_altered_opens_nothing(app: App, http: httpx.AsyncClient) -> None:
    job_id, other = await done(app), await done(app, "b.pdf")
    ticket = (await given(http, job_id))["url"].rpartition("/")[2]
    far = Ticket(other, 1, 2**62)

    forged = [
        ticket[:-1],
        f"{ticket}A",
        "B" + ticket[1:],
        ticket[:20] + "_x_x" + ticket[24:],
        "x",
        "%00",
        "é",
    ]
    forged += [signed(b"another key", far), signed(SECRET.encode(), far), ticket.swapcase()]
    for each in forged:
        answer = await http.get(f"/v1/downloads/{each}")
        assert (answer.status_code, answer.json()["code"]) == (403, "FR-886"), each


async def test_a_job_that_was_run_again_has_another_address(app: App, http: httpx.AsyncClient) -> None:
    job_id = await done(app)
    address = await given(http, job_id)
    await app.client.arevive(job_id)
    waiting = await http.get(f"/v1/jobs/{job_id}/download")
    assert (waiting.status_code, waiting.json()["code"]) == (409, "FR-307")
    await ended(app, job_id)

    answer = await http.get(address["url"])

    assert (answer.status_code, answer.json()["code"]) == (410, "FR-887")


async def test_a_large_result_is_read_from_a_store_that_gives_addresses(
    app: App, http: httpx.AsyncClient
) -> None:
    job_id = await done(app, "a" * 2000)

    there, here = await given(http, job_id, expires_s=60), await given(http, job_id, source="gateway")

    assert there["url"].startswith("https://store.example.com/") and there["url"].endswith("?expires=60")
    assert f"/{job_id}/result-" in there["url"]
    assert (there["source"], there["bytes"] > 2000, len(there["sha256"])) == ("store", True, 64)
    assert (here["source"], here["bytes"]) == ("gateway", None)
    assert (await http.get(here["url"])).json()["path"] == "a" * 2000


async def test_what_is_signed_in_the_store_is_read_through_the_gateway_alone(
    sqlite_path: Path, tmp_path: Path
) -> None:
    settings = Config(web_download_secret=SECRET, outside_bytes_min=1024)
    store, seal = Addressed(tmp_path / "large"), Sign({"k1": bytes(32)})
    async with App(f"sqlite:///{sqlite_path}", config=settings, outside=store, seal=seal) as app:
        app.job(name="pages", queue="documents")(pages)
        job_id = await done(app, "a" * 2000)
        async with calling(Gateway(app, authorize=Door())) as http:
            address = await given(http, job_id)
            assert address["source"] == "gateway"
            assert (await http.get(address["url"])).json()["path"] == "a" * 2000


async def test_only_who_may_read_the_job_is_given_an_address_and_only_of_a_result(
    app: App, http: httpx.AsyncClient, door: Door
) -> None:
    job_id = await done(app)
    failing = (await app.asubmit_by_name("mail", {"to": "x"}, attempts_max=1)).id
    await ended(app, failing)

    assert (await http.get(f"/v1/jobs/{failing}/download")).json()["code"] == "FR-305"
    assert (await http.get(f"/v1/jobs/{job_id}/download", params={"expires_s": 3601})).status_code == 422
    door.only(Scope.SUBMIT)
    assert (await http.get(f"/v1/jobs/{job_id}/download")).status_code == 403
    door.only(Scope.READ, queues={"letters"})
    assert (await http.get(f"/v1/jobs/{job_id}/download")).status_code == 404


@pytest.mark.parametrize("secret", [None, "short"])
async def test_without_a_secret_no_address_is_signed(sqlite_path: Path, secret: str | None) -> None:
    settings = Config(web_download_secret=secret)
    async with App(f"sqlite:///{sqlite_path}", config=settings) as app:
        app.job(name="pages", queue="documents")(pages)
        job_id = await done(app)
        async with calling(Gateway(app, authorize=Door())) as http:
            for path in (f"/v1/jobs/{job_id}/download", "/v1/downloads/x"):
                answer = await http.get(path)
                assert (answer.status_code, answer.json()["code"]) == (409, "FR-885")


async def test_who_has_no_token_is_bounded_too_and_kept_out_under_maintenance(sqlite_path: Path) -> None:
    bounded = Config(web_download_secret=SECRET, web_rate_per_second=0.001, web_rate_burst=2)
    async with App(f"sqlite:///{sqlite_path}", config=bounded) as app:
        async with calling(Gateway(app)) as http:
            found = [(await http.get("/v1/downloads/none")).status_code for _ in "123"]
            described = (await http.get("/openapi.json")).status_code
            alive = [(await http.get("/livez")).status_code for _ in "123"]
        await app.client.maintenance.abegin()
        async with calling(Gateway(app)) as http:
            closed = await http.get("/v1/downloads/none")

    assert (found, described, alive) == ([403, 403, 429], 429, [200] * 3)
    assert (closed.status_code, closed.json()["code"]) == (503, "FR-875")
