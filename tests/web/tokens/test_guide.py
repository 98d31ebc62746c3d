"""docs/guide/tokens.md does what it says: its code, its commands, and its table of scopes."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from fencerow import App
from fencerow.web import Grant, Scope
from tests.cli import conftest as command_line
from tests.cli.conftest import Cli
from tests.house.tree import ROOT

cli = command_line.cli  # a fixture

PAGE = (ROOT / "docs" / "guide" / "tokens.md").read_text("utf-8")
(PYTHON,) = re.findall(r"^```python\n(.+?)^```", PAGE, re.MULTILINE | re.DOTALL)
COMMANDS = re.findall(r"^fencerow (tokens.*)$", PAGE, re.MULTILINE)
ROWS = re.findall(r"^\| `(\w+)` \| .+ \| (.*)\|$", PAGE, re.MULTILINE)


def test_its_code_and_its_commands_run(tmp_path: Path, cli: Cli) -> None:
    url = f"sqlite:///{tmp_path}/app.db"
    with App(url) as app:
        exec(compile(PYTHON, "tokens.md", "exec"), {"app": app})  # noqa: S102
        (made,) = app.client.tokens.known()
    assert made.revoked_at is not None and made.queues == ("mail",)

    create, look, revoke = COMMANDS
    assert cli(*shlex.split(create.partition(" > ")[0]), "--url", url).code == 0
    (live,) = [each for each in cli(*look.split(), "--json", "--url", url).json if each["state"] == "live"]
    assert cli(*revoke.split()[:-1], live["id"], "--url", url).code == 0


def test_its_table_says_what_includes_what() -> None:
    told = {name: set(re.findall(r"`(\w+)`", includes)) for name, includes in ROWS}

    assert set(told) == {str(scope) for scope in Scope}
    for scope in Scope:
        may = {str(each) for each in Scope if Grant("", "", frozenset({scope})).may(each)} - {str(scope)}
        assert may == (told[scope] or (may if scope is Scope.ADMIN else set()))
