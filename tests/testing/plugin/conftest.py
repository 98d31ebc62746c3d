"""A user's environment: the wheels are installed there and this clone is not."""

from __future__ import annotations

import re
import subprocess
import sysconfig
import venv
import zipfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

from tests.house.tree import ROOT
from tests.install.test_wheel import SOURCE, built, clean

Run = Callable[..., subprocess.CompletedProcess[str]]

OTHERS = ("cacheprovider", "asyncio", "anyio", "xdist", "timeout", "hypothesispytest")


@pytest.fixture(scope="session")
def user_python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An interpreter with Fencerow and its proofs from their wheels, and with the libraries and pytest from here."""
    folder = tmp_path_factory.mktemp("user")
    venv.create(folder / "env", with_pip=False, symlinks=True)
    (packages,) = (folder / "env" / "lib").glob("python*/site-packages")
    for source in (ROOT, SOURCE / "fencerow_proof"):
        with zipfile.ZipFile(built("wheel", source, folder)) as opened:
            opened.extractall(packages)
    # A path in a .pth file is searched last, and .pth files there are not read: an editable clone stays out.
    (packages / "libraries.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return folder / "env" / "bin" / "python"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """The project of docs/testing.md, file by file as the page shows it."""
    page = (ROOT / "docs" / "testing.md").read_text("utf-8")
    for name, text in re.findall(r"^```python\n# (\w+\.py)\n(.+?)^```", page, re.MULTILINE | re.DOTALL):
        (tmp_path / name).write_text(text, "utf-8")
    (settings,) = re.findall(r"^```toml\n(.+?)^```", page, re.MULTILINE | re.DOTALL)
    (tmp_path / "pyproject.toml").write_text(settings + 'filterwarnings = ["error"]\n', "utf-8")
    return tmp_path


@pytest.fixture
def run(user_python: Path) -> Run:
    """Run pytest as the user would, in a process of its own."""

    def pytest_in(
        folder: Path, *options: str, without: Sequence[str] = OTHERS, environ: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        left_out = [part for name in without for part in ("-p", f"no:{name}")]
        return subprocess.run(
            [str(user_python), "-m", "pytest", *left_out, *options],
            cwd=folder,
            env={**clean(), **(environ or {})},
            capture_output=True,
            text=True,
            timeout=100,
        )

    return pytest_in
