"""The tab key: in a real bash, and whatever state the database is in."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import fencerow
from fencerow.core.model.ids import new_id
from fencerow.core.store import store
from tests.cli.conftest import Cli
from tests.kit.jobs import AnyEngine
from tests.kit.pace import PATIENCE_S

ASKS = "_FENCEROW_COMPLETE"


def registered(engine: AnyEngine) -> None:
    info = '{"queues":["mail","mails\\u001b[2J","slow"],"names":["send","sing"]}'
    engine.run(store.register(holder=new_id(), name="w", host="h", pid=1, info=info, lease_s=30.0))


def completed(cli: Cli, monkeypatch: pytest.MonkeyPatch, *words: str) -> list[str]:
    """What bash is told behind these words; the last is the one under the cursor."""
    monkeypatch.setenv(ASKS, "bash_complete")
    monkeypatch.setenv("COMP_WORDS", " ".join(words))
    monkeypatch.setenv("COMP_CWORD", str(len(words) - 1))
    result = cli()
    assert (result.code, result.err) == (0, "")
    return [line.partition(",")[2] for line in result.out.splitlines() if line]


def test_bash_completes_commands_options_and_names(url: str, engine: AnyEngine, tmp_path: Path) -> None:
    registered(engine)
    command = tmp_path / "fencerow"
    command.write_text(f"#!/bin/sh\nexec '{sys.executable}' -m fencerow.cli.main \"$@\"\n")
    command.chmod(0o755)
    # As the shell does it: the function that was registered for the command is called with the words so far.
    script = """
        eval "$(fencerow completion bash)" || exit 9
        complete -p fencerow >/dev/null || exit 8
        press() {
            COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=()
            _fencerow_completion fencerow
            echo "${COMPREPLY[*]}"
        }
        press fencerow jobs can
        press fencerow jobs list --qu
        press fencerow jobs list --queue ma
        press fencerow submit s
    """
    env = {
        **os.environ,
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
        "PYTHONPATH": str(Path(fencerow.__file__).parents[1]),
    }

    found = subprocess.run(
        ["bash", "--norc", "-c", script], env=env, capture_output=True, text=True, timeout=PATIENCE_S
    )

    assert found.stderr == ""
    assert found.stdout.splitlines() == ["cancel", "--queue", "mail", "send sing"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_gets_its_lines(cli: Cli, shell: str) -> None:
    result = cli("completion", shell)

    assert result.code == 0
    assert f"{ASKS}={shell}_complete" in result.out


@pytest.mark.parametrize(
    "url",
    ["sqlite:///not-there.db", "postgresql://nobody@127.0.0.1:1/none", "nonsense://", ""],
)
def test_no_database_completes_nothing_and_says_nothing(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, url: str, tmp_path: Path
) -> None:
    monkeypatch.setenv("FENCEROW_URL", url)

    assert completed(cli, monkeypatch, "fencerow", "jobs", "list", "--queue", "m") == []
    assert list(tmp_path.iterdir()) == [], "no file was made"


def test_a_name_that_would_move_the_cursor_is_not_offered(
    cli: Cli, url: str, engine: AnyEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    registered(engine)

    assert completed(cli, monkeypatch, "fencerow", "queues", "pause", "m") == ["mail"]


def test_the_version_is_an_option_too(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    result = cli("--version")

    assert (result.code, result.out) == (0, f"fencerow {fencerow.__version__}\n")
