"""What is kept of attempts that are answered later: sealed, seen by `doctor`, and removed with its job."""

from __future__ import annotations

from pathlib import Path

import pytest

from fencerow import App
from fencerow.payloads import Seal
from fencerow.testing import adrain
from fencerow.testing.clock import clock_of
from fencerow.web.gateway.asgi import Gateway
from fencerow.web.worked.attempts import NOWHERE, purge_worked
from fencerow.web.worked.checks import examine_worked
from tests.web.gateway.conftest import Door, calling
from tests.web.worked.stage import SECRET_ENV, Endpoint, config_for
from tests.web.worked.test_later import deferred, say


async def test_an_answer_is_sealed_where_the_app_seals(migrated_path: Path, endpoint: Endpoint) -> None:
    seal = Seal({"k": b"s" * 32}, marks=b"m" * 32)
    async with App(f"sqlite:///{migrated_path}", config=config_for(endpoint), seal=seal) as app:
        async with calling(Gateway(app, authorize=Door())) as http:
            _, request = await deferred(app, endpoint)
            await say(http, request, "succeed", result={"iban": "the IBAN of Ada"})
        with app.engine.session() as session:
            ((stored, digest),) = session.connection.execute(
                "SELECT answer, digest FROM fencerow_worked_attempts"
            )
        (ran,) = await adrain(app, check=True)

    assert ran.result == {"iban": "the IBAN of Ada"}
    assert "the IBAN of Ada" not in str(stored) and request.token not in str(digest)


async def test_doctor_sees_who_is_overdue_and_a_worker_without_the_secret_takes_an_answer(
    lite: App, endpoint: Endpoint, http_lite: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    await deferred(lite, endpoint, answer_s=100, attempts_max=1)
    waits = [(each.level.value, each.found) for each in examine_worked(lite.engine, lite.config)]
    clock_of(lite.engine).advance(100 + 61)
    late = [each.name for each in examine_worked(lite.engine, lite.config)]
    monkeypatch.delenv(SECRET_ENV)  # what is there already needs no signature
    (ran,) = await adrain(lite)

    assert waits == [("ok", "1 attempt may be answered later")]
    assert late == ["jobs worked over HTTP", "endpoints that nobody gives up"]
    assert ran.outcome == "failed"
    assert list(examine_worked(lite.engine, lite.config)) == []


async def test_it_is_removed_with_its_job(lite: App, endpoint: Endpoint) -> None:
    job_id, _ = await deferred(lite, endpoint)
    kept = lite.engine.run(purge_worked(NOWHERE, limit=10))
    await lite.client.acancel(job_id)
    await lite.client.adelete(job_id)
    removed = lite.engine.run(purge_worked(NOWHERE, limit=10))

    assert (kept.gone, removed.gone) == (0, 1)
