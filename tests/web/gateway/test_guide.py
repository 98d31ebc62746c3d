"""docs/guide/http.md does what it says: its blocks in their order, with curl, a worker and a gateway of their own."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from fencerow import App
from fencerow.testing.ports import free_port
from tests.house.tree import ROOT
from tests.kit.pace import PATIENCE_S

PAGE = (ROOT / "docs" / "guide" / "http.md").read_text("utf-8")
BLOCKS = re.findall(r"^```(sh|python|json|text)\n(.+?)^```", PAGE, re.MULTILINE | re.DOTALL)
END = "--- the next block ---"


@pytest.mark.skipif(shutil.which("curl") is None, reason="there is no curl on this machine")
def test_its_blocks_run_and_say_what_stands_below_them(tmp_path: Path) -> None:
    (_, program), (_, mounted) = (block for block in BLOCKS if block[0] == "python")
    (tmp_path / "shop.py").write_text(program)
    shutil.copy(ROOT / "examples" / "webhooks" / "receive.py", tmp_path)
    port, hooks = str(free_port()), str(free_port())
    commands = [text for kind, text in BLOCKS if kind == "sh"]
    told = [
        [text for kind, text in _after(number) if kind in ("json", "text")] for number in range(len(commands))
    ]
    env = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "FENCEROW_APP": "shop:app",
        "FENCEROW_WEBHOOK_ALLOW": f"http://127.0.0.1:{hooks}",
    }
    prepare, start, *asking = commands

    _said([prepare], tmp_path, env)
    with ExitStack() as running:
        assert start.count("\n") == 2
        running.enter_context(_started(["worker"], "waits for jobs", tmp_path, env))
        running.enter_context(_started(["serve", "--bind", port], f"127.0.0.1:{port}", tmp_path, env))
        said = _said([each.replace("8080", port).replace("9000", hooks) for each in asking], tmp_path, env)

    for command, wanted, found in zip(asking, told[2:], said, strict=True):
        assert re.fullmatch(_pattern("".join(wanted)), found, re.DOTALL), f"{command}\n{found}"
    names: dict[str, object] = {"app": App(f"sqlite:///{tmp_path}/shop.db")}
    exec(compile(mounted, "http.md", "exec"), names)  # noqa: S102


def _after(number: int) -> Iterator[tuple[str, str]]:
    """What stands between the command block of this number and the next one."""
    commands = [at for at, block in enumerate(BLOCKS) if block[0] == "sh"]
    following = [*commands, len(BLOCKS)]
    yield from BLOCKS[commands[number] + 1 : following[number + 1]]


def _said(commands: list[str], folder: Path, env: dict[str, str]) -> list[str]:
    script = f"echo '{END}'\n".join(["set -eu\n", *commands])
    done = subprocess.run(
        ["bash", "-c", script],
        cwd=folder,
        env=env,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.split(f"{END}\n")[1:]


@contextmanager
def _started(command: list[str], until: str, folder: Path, env: dict[str, str]) -> Iterator[None]:
    """Run `fencerow …` beside, once it has said this."""
    with subprocess.Popen(
        [sys.executable, "-m", "fencerow", *command], cwd=folder, env=env, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        try:
            heard = ""
            while until not in heard and (line := process.stderr.readline()):
                heard += line
            assert until in heard, heard
            yield
        finally:
            process.terminate()
            process.stderr.read()


def _pattern(told: str) -> str:
    """`…` stands for anything."""
    return ".*?".join(map(re.escape, told.split("…"))) if told else ".*"
