"""`fencerow webhooks in`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fencerow.cli import main
from tests.web.inbound.senders import GITHUB

MODULE = """
from fencerow import App
from tests.web.inbound.conftest import declare
app = App("sqlite:///hooks.db")
declare(app)
"""


def test_it_shows_hooks_and_whether_their_secrets_are_set_never_what_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "with_hooks.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delenv("OF_STRIPE")

    assert main.run(["webhooks", "in", "-A", "with_hooks:app", "--json"]) == 0
    found = json.loads(told := capsys.readouterr().out)
    assert main.run(["webhooks", "in", "-A", "with_hooks:app"]) == 0

    assert [(each["path"], each["secrets"]) for each in found] == [
        ("/v1/hooks/github", {"OF_GITHUB": True}),
        ("/v1/hooks/stripe", {"OF_STRIPE": False}),
        ("/v1/hooks/others", {"OF_OTHERS": True}),
    ]
    assert GITHUB not in told + capsys.readouterr().out
