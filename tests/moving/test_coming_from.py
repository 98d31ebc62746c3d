"""The worked examples of docs/coming-from.md run as they stand, and what they submit succeeds."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from fencerow import App
from fencerow.core.model.state import State
from fencerow.testing import drain
from tests.house.tree import ROOT

TEXT = (ROOT / "docs" / "coming-from.md").read_text("utf-8")
SECTIONS = re.findall(r"^## (.+?)\n(.+?)(?=^## |\Z)", TEXT, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize(("name", "section"), SECTIONS, ids=[name for name, _ in SECTIONS])
def test_the_example_of_each_system_runs(
    name: str, section: str, migrated_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FENCEROW_URL", f"sqlite:///{migrated_path}")
    (example,) = re.findall(r"^```python\n(.+?)^```", section, re.MULTILINE | re.DOTALL)
    made: dict[str, object] = {"__name__": name}
    exec(compile(example, name, "exec"), made)  # noqa: S102 (it is a page of ours)
    app = made["app"]
    assert isinstance(app, App)

    with app:
        assert drain(app)
        ended = app.client.list_jobs()
    assert {each.state for each in ended} == {State.SUCCEEDED}
    assert "**You would miss**" in section
