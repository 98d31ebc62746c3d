"""docs/guide/limits.md does what it says: its code and its commands, from the page itself."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from fencerow import App
from fencerow.limits import Limit, Rate
from tests.cli import conftest as command_line
from tests.cli.conftest import Cli
from tests.house.tree import ROOT

cli = command_line.cli  # a fixture

PAGE = (ROOT / "docs" / "guide" / "limits.md").read_text("utf-8")
PYTHON = re.findall(r"^```python\n(.+?)^```", PAGE, re.MULTILINE | re.DOTALL)
COMMANDS = re.findall(r"^fencerow (limits .+)$", PAGE, re.MULTILINE)
DEFINED = re.findall(r"`((?:Limit|Rate)\(.+?\))`", PAGE)


def test_what_the_program_declares_binds_its_jobs_and_the_commands_change_it(
    tmp_path: Path, cli: Cli
) -> None:
    url = f"sqlite:///{tmp_path}/app.db"
    names = {"App": App, "url": url}
    exec(compile(PYTHON[0], "limits.md", "exec"), names)  # noqa: S102
    app = names["app"]
    assert isinstance(app, App)
    with app:
        assert app.declare_limits() == ["queue:mail", "github", "tenant", "fleet"]
        job = app.client.get(names["sync"].submit("ada", "fencerow").id)  # type: ignore[attr-defined]
        assert job.limits == ["github", "tenant/ada"]

        assert len(COMMANDS) == 9
        for line in COMMANDS:
            done = cli(*shlex.split(line), "--url", url)
            assert done.code == 0, f"{line}\n{done.out}{done.err}"
        assert [each.name for each in app.client.limits.known()] == ["fleet", "github", "tenant"]


def test_what_the_page_defines_can_be_defined() -> None:
    assert len(DEFINED) >= 6
    for text in [*DEFINED, *PYTHON[1:]]:
        exec(text, {"Limit": Limit, "Rate": Rate})  # noqa: S102
