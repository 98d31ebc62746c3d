"""What the command shows of sealed payloads, and does with them."""

from __future__ import annotations

from fencerow import App
from fencerow.payloads import Seal
from fencerow.testing import drain
from tests.cli.conftest import Cli

SEAL = Seal({"k1": b"1" * 32}, marks=b"m" * 32)


def test_a_sealed_job_is_shown_by_its_key_and_an_unsealed_change_is_refused(cli: Cli, url: str) -> None:
    with App(url, seal=SEAL) as app:

        @app.job
        def charge(card: str) -> str:
            return card

        handle = charge.submit("visa of Ada")
        refused = cli("jobs", "change", handle.id, "--args", '{"card":"5"}', "--yes")
        assert refused.code and "FR-201" in refused.err and "sealed or signed" in refused.err
        drain(app)
    shown = cli("jobs", "show", handle.id).out
    assert shown.count("(sealed under the key k1)") == 2
    assert "visa of Ada" not in shown
