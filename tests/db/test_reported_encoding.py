"""The server reports the client_encoding to each driver: to know it costs the user's transaction no statement."""

from __future__ import annotations

from typing import Any

import pytest

from fencerow.core.store import store
from fencerow.db.adapters import lent_postgres
from fencerow.db.adapters.frame import SentText
from tests.db.lenders import OF_EACH_DRIVER, Loan
from tests.kit.jobs import AnyEngine, new_job

POSTGRES = [each for each in OF_EACH_DRIVER if each.dialect == "postgres"]


@pytest.mark.parametrize("lender", POSTGRES, ids=lambda lender: lender.name)
async def test_what_the_driver_knows_is_not_asked(
    loan: Loan, lent_engine: AnyEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def sent(text: str, *given: Any) -> Any:
        asked.append(text)
        return SentText(text, *given)

    monkeypatch.setattr(lent_postgres, "SentText", sent)
    await loan.begin()

    await loan.run(store.submit([new_job()]))

    assert asked == []
