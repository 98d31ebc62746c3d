"""docs/guide/fairness.md does what it says: its code and its commands, from the page itself."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from fencerow import App
from fencerow.errors import ConfigError, InvalidInput
from tests.cli import conftest as command_line
from tests.cli.conftest import Cli
from tests.house.tree import ROOT

cli = command_line.cli  # a fixture

PAGE = (ROOT / "docs" / "guide" / "fairness.md").read_text("utf-8")
PYTHON = re.findall(r"^```python\n(.+?)^```", PAGE, re.MULTILINE | re.DOTALL)
COMMANDS = re.findall(r"^fencerow (shares.*)$", PAGE, re.MULTILINE)


def test_the_page_does_what_it_says(tmp_path: Path, cli: Cli, capsys: pytest.CaptureFixture[str]) -> None:
    url = f"sqlite:///{tmp_path}/app.db"
    names: dict[str, Any] = {"url": url}
    declares, submits, weighs = PYTHON
    exec(compile(declares, "fairness.md", "exec"), names)  # noqa: S102
    app = names["app"]
    assert isinstance(app, App)
    with app:
        app.migrate()
        job = names["report"].submit(tenant="ada", month="2026-11")
        exec(compile(submits, "fairness.md", "exec"), names)  # noqa: S102
        assert app.client.get(job.id).share == "ada"

        for line in COMMANDS:
            done = cli(*shlex.split(line), "--url", url)
            assert done.code == 0, f"{line}\n{done.out}{done.err}"
        assert not app.client.shares.weigh("default", "tenant-7", 3), "the command has set it"
        exec(compile(weighs, "fairness.md", "exec"), names)  # noqa: S102
        assert capsys.readouterr().out.splitlines()[-2:] == ["ada 1 1 0", "tenant-7 3 1 0"]
        assert "tenant-7" in cli("shares", "--url", url).out


def test_what_cannot_be_a_share_or_a_weight_is_refused(tmp_path: Path, cli: Cli) -> None:
    app = App(f"sqlite:///{tmp_path}/app.db")

    @app.job(share=lambda tenant: tenant)
    def report(tenant: Any) -> None: ...

    with app:
        app.migrate()
        for found in (7, "", "x" * 257):
            with pytest.raises(InvalidInput, match="share"):
                report.submit(found)
        with pytest.raises(InvalidInput, match="share"):
            report.using(share="").submit("ada")
        assert app.client.shares.known() == []
        report.submit(None)
        for weight in (0, 1001, -3):
            with pytest.raises(ConfigError, match="weight"):
                app.client.shares.weigh("default", "ada", weight)
    done = cli("shares", "set", "default", "ada", "--weight", "0", "--url", f"sqlite:///{tmp_path}/app.db")
    assert done.code != 0 and "weight" in done.err and "Traceback" not in done.err
