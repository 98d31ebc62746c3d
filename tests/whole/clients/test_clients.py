"""The clients of examples/clients: generated, built, and run against a gateway as their page says."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from fencerow.testing.ports import free_port
from tests.house.tree import ROOT
from tests.kit.pace import PATIENCE_S

CLIENTS = ROOT / "examples" / "clients"
PAGE = (CLIENTS / "README.md").read_text("utf-8")
BUILD_S = 3 * PATIENCE_S
GENERATOR = "openapi-generator-cli==7.26.0"


@pytest.fixture
def clients(tmp_path: Path) -> Path:
    """A copy of the folder, where things may be installed and built, with the document from which they are made."""
    for name in ("examples/clients", "docs/reference"):
        shutil.copytree(
            ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("node_modules", "dist", "*.md")
        )
    return tmp_path / "examples" / "clients"


def typescript(clients: Path) -> list[str]:
    """Build it; returns how it is called."""
    _need("node", "npm")
    folder = clients / "typescript"
    done(["npm", "ci", "--no-audit", "--no-fund"], folder)
    done(["npm", "run", "build"], folder)
    return ["node", str(folder / "dist" / "main.js")]


def go(clients: Path) -> list[str]:
    """Build it, with a generator that is a wheel with a program for Java in it; returns how it is called."""
    _need("go", "java")
    download = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", str(clients), GENERATOR]
    done(download, clients)
    (wheel,) = clients.glob("*.whl")
    with zipfile.ZipFile(wheel) as packed:
        (jar,) = [name for name in packed.namelist() if name.endswith(".jar")]
        packed.extract(jar, clients)
    done(["./generate.sh"], clients / "go", GENERATOR=f"java -jar {clients / jar}")
    done(
        ["go", "build", "-o", "client", "."],
        clients / "go",
        GOCACHE=str(clients / "cache"),
        GOFLAGS="-mod=mod",
    )
    return [str(clients / "go" / "client")]


@pytest.mark.prove
@pytest.mark.parametrize("build", [typescript, go])
def test_it_says_what_its_page_promises(build: Callable[[Path], list[str]], clients: Path) -> None:
    """It is started before there is a gateway: its first requests are lost, and sent again."""
    command = build(clients)
    receiver, gateway = str(free_port()), str(free_port())
    ours = {
        "FENCEROW_APP": "shop:app",
        "FENCEROW_GATEWAY_URL": f"http://127.0.0.1:{gateway}",
        "FENCEROW_WEBHOOK_ALLOW": f"http://127.0.0.1:{receiver}",
    }
    hooks = f"http://127.0.0.1:{receiver}/hooks"
    fencerow(clients, ours, "migrate")
    scopes = ["--scope", "submit", "--scope", "operate"]
    token = fencerow(clients, ours, "tokens", "create", "example", *scopes).strip()
    wanted = ["--job", "pages", "--event", "succeeded", "--json"]
    secret = json.loads(fencerow(clients, ours, "webhooks", "add", "example", hooks, *wanted))["secret"]
    calls = ours | {"FENCEROW_TOKEN": token, "WEBHOOK_SECRET": secret}

    with (
        started([*command, receiver], clients, calls) as client,
        started([*FENCEROW, "worker"], clients, ours),
        started([*FENCEROW, "serve", "--bind", gateway], clients, ours),
    ):
        said, _ = client.communicate(timeout=PATIENCE_S)

    assert said == _promised()
    assert client.returncode == 0


def test_the_lock_names_no_place_and_every_package_is_pinned() -> None:
    folder = CLIENTS / "typescript"
    lock = json.loads((folder / "package-lock.json").read_text("utf-8"))["packages"]
    package = json.loads((folder / "package.json").read_text("utf-8"))

    assert all("resolved" not in each for each in lock.values())
    assert all(each["integrity"] for name, each in lock.items() if name)
    pinned = {**package["dependencies"], **package["devDependencies"]}
    assert pinned == {name: lock[f"node_modules/{name}"]["version"] for name in pinned}


FENCEROW = [sys.executable, "-m", "fencerow"]


def fencerow(folder: Path, env: Mapping[str, str], *words: str) -> str:
    return done([*FENCEROW, *words], folder, **env)


def done(command: list[str], folder: Path, **env: str) -> str:
    """Run it to its end; returns what it says."""
    ended = subprocess.run(
        command,
        cwd=folder,
        env=os.environ | env,
        capture_output=True,
        text=True,
        timeout=BUILD_S,
        check=False,
    )
    assert ended.returncode == 0, f"{command}: {ended.stdout}{ended.stderr}"
    return ended.stdout


@contextmanager
def started(command: list[str], folder: Path, env: Mapping[str, str]) -> Iterator[subprocess.Popen[str]]:
    """Run it beside, until it is not needed any more."""
    with subprocess.Popen(
        command, cwd=folder, env=os.environ | env, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            yield process
        finally:
            process.terminate()


def _promised() -> str:
    found = re.search(r"^Both say:\n\n```text\n(.+?)^```", PAGE, re.MULTILINE | re.DOTALL)
    assert found is not None
    return found[1]


def _need(*programs: str) -> None:
    for each in programs:
        if shutil.which(each) is None:
            pytest.skip(f"there is no {each} on this machine")
