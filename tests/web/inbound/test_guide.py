"""docs/guide/webhooks-in.md does what it says: its blocks in their order, with a worker and a gateway of their own."""

from __future__ import annotations

import os
import re
import shutil
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from fencerow import App
from fencerow.testing.ports import free_port
from tests.house.tree import ROOT
from tests.web.gateway.test_guide import _pattern, _said, _started

PAGE = (ROOT / "docs" / "guide" / "webhooks-in.md").read_text("utf-8")
BLOCKS = re.findall(r"^```(sh|python|json|text)\n(.+?)^```", PAGE, re.MULTILINE | re.DOTALL)
SET = re.compile(r"(\w+)=(\S+)")


@pytest.mark.skipif(
    not (shutil.which("curl") and shutil.which("openssl")), reason="it needs curl and openssl"
)
def test_its_blocks_run_and_say_what_stands_below_them(tmp_path: Path) -> None:
    program, sender, mounted = (text for kind, text in BLOCKS if kind == "python")
    (tmp_path / "shop.py").write_text(program)
    prepare, listing, start, *asking = (text for kind, text in BLOCKS if kind == "sh")
    wanted, *answers = (text for kind, text in BLOCKS if kind in ("json", "text"))
    port, secrets = str(free_port()), dict(SET.findall(prepare.splitlines()[0]))
    env = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", **secrets}
    names: dict[str, Any] = {}

    _, listed = _said([prepare, listing], tmp_path, env)
    with ExitStack() as running:
        assert start.count("\n") == 2
        running.enter_context(_started(["worker"], "waits for jobs", tmp_path, env))
        running.enter_context(_started(["serve", "--bind", port], f"127.0.0.1:{port}", tmp_path, env))
        said = _said([each.replace("8080", port) for each in asking], tmp_path, env)
        exec(compile(sender, "webhooks-in.md", "exec"), names)  # noqa: S102
        bank = f"http://127.0.0.1:{port}/v1/hooks/bank"
        assert names["send"](bank, secrets["BANK_SECRET"], "msg_1", {"type": "paid", "data": 7}) == 202
        with App(f"sqlite:///{tmp_path}/shop.db") as app:
            ends = {app.client.handle(each.id).result(timeout_s=60) for each in app.client.list_jobs()}

    assert listed.split() == wanted.split()
    for told, found in zip(answers, said, strict=True):
        assert re.fullmatch(_pattern(told), found, re.DOTALL), found
    assert ends == {"push to refs/heads/main", "paid: 7"}
    (tmp_path / "other").mkdir()
    names["app"] = App(f"sqlite:///{tmp_path}/other/shop.db")
    exec(compile(mounted, "webhooks-in.md", "exec"), names)  # noqa: S102
