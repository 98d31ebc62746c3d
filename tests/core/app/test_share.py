"""`share=`: said of a job or of one submit, or computed from the arguments; and the weights of shares."""

from __future__ import annotations

import pytest

from fencerow import App
from fencerow.core.errors import ConfigError, DeclarationError, InvalidInput


def test_a_share_is_said_or_computed(app: App) -> None:

    @app.job(share=lambda tenant, **others: tenant if tenant != "nobody" else None)
    def report(tenant: str, month: str = "may") -> None: ...

    @app.job(share="house")
    def clean() -> None: ...

    handles = [
        report.submit("ada"),
        report.submit("nobody"),
        report.using(share="bob").submit("ada"),
        clean.submit(),
    ]
    found = [app.client.get(handle.id).share for handle in handles]
    assert found == ["ada", None, "bob", "house"]

    with pytest.raises(InvalidInput):
        report.using(share="")
    with pytest.raises(InvalidInput, match=r"share= of .*report raised ZeroDivisionError"):
        report.using(share=lambda **_: str(1 / 0)).submit("ada")
    with pytest.raises(DeclarationError, match=r"share= of .*other cannot be called"):

        @app.job(share=lambda tenant: tenant)
        def other(customer: str) -> None: ...

    with pytest.raises(ConfigError, match="weight is 0"):
        app.client.shares.weigh("default", "ada", 0)
    assert app.client.shares.weigh("default", "ada", 3) and not app.client.shares.weigh("default", "ada", 3)
    assert [(each.share, each.weight, each.queued) for each in app.client.shares.known("default")] == [
        ("ada", 3, 1),
        ("bob", 1, 1),
        ("house", 1, 1),
    ]
    assert app.client.shares.weigh("default", "ada", 1) and not app.client.shares.weigh("default", "ada", 1)
