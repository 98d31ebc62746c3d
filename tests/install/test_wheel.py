"""What users install: a wheel and a source archive, with all that belongs in them, in an environment of their own.

The environment is filled from the package index that pip is set up with, as a user's is.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

from tests.house.tree import ROOT, tracked

BUILD = "import sys; from hatchling import build; print(getattr(build, sys.argv[1])(sys.argv[2]))"
SOURCE = ROOT / "src"


def built(kind: str, source: Path, into: Path) -> Path:
    """Call the build backend as a frontend does; the name of the file is the last line it prints."""
    done = subprocess.run(
        [sys.executable, "-c", BUILD, f"build_{kind}", str(into)],
        cwd=source,
        env={**os.environ, "SOURCE_DATE_EPOCH": "1577836800"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return into / done.stdout.splitlines()[-1]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built("wheel", ROOT, tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built("sdist", ROOT, tmp_path_factory.mktemp("sdist"))


def in_wheel(path: Path) -> set[str]:
    with zipfile.ZipFile(path) as opened:
        return {name for name in opened.namelist() if ".dist-info/" not in name}


def of_the_package() -> set[str]:
    """Every file of the package, the documents of the demo among them, and the pytest plugin beside it."""
    found = (path for path in (SOURCE / "fencerow").rglob("*") if path.is_file())
    package = {str(path.relative_to(SOURCE)) for path in found if path.suffix not in (".pyc", ".so")}
    return {*package, "pytest_fencerow.py"}


def test_the_wheel_has_every_file_of_the_package_and_nothing_else(wheel: Path) -> None:
    names = in_wheel(wheel)
    assert names == of_the_package()
    for suffix, least in {".sql": 20, ".pdf": 10, "py.typed": 1}.items():
        assert sum(name.endswith(suffix) for name in names) >= least, suffix
    assert wheel.name.endswith("-py3-none-any.whl")


def test_the_archive_makes_the_same_wheel_and_has_what_a_packager_needs(
    archive: Path, tmp_path: Path
) -> None:
    with tarfile.open(archive) as opened:
        names = {name.partition("/")[2] for name in opened.getnames()}
        opened.extractall(tmp_path, filter="data")
    assert {"LICENSE", "NOTICE", "README.md", "pyproject.toml", "tests/conftest.py", "dev.py"} <= names
    missing = {str(path.relative_to(ROOT)) for path in tracked() if SOURCE in path.parents} - names
    assert not missing
    (unpacked,) = tmp_path.iterdir()
    again = built("wheel", unpacked, tmp_path)
    assert in_wheel(again) == of_the_package()


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The scripts of an empty environment, outside the clone, in which the wheel was installed."""
    folder = tmp_path_factory.mktemp("user")
    venv.create(folder / "env", with_pip=True)
    scripts = folder / "env" / "bin"
    pip: list[str | Path] = [scripts / "python", "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    done = subprocess.run([*pip, f"{wheel}[demo]"], env=clean(), capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return scripts


def clean() -> dict[str, str]:
    """A user's environment: nothing of ours, nothing of another Python's."""
    return {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("FENCEROW_", "PYTHON", "VIRTUAL_ENV", "PYTEST"))
    }


def run(*command: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(part) for part in command], cwd=cwd, env=clean(), capture_output=True, text=True, timeout=120
    )


@pytest.mark.timeout(480)
def test_the_installed_demo_reads_real_documents_while_its_worker_is_killed(
    installed: Path, tmp_path: Path
) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "invoice.pdf").write_bytes((SOURCE / "fencerow/demo/samples/invoice_classic.pdf").read_bytes())
    own = run(installed / "fencerow", "demo", "--exit", mine / "invoice.pdf", cwd=mine)
    assert own.returncode == 0, own.stdout + own.stderr
    assert "invoice" in own.stdout

    done = run(installed / "fencerow", "demo", "--exit", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"kill", done.stdout, re.IGNORECASE), done.stdout
    assert "Traceback" not in done.stdout + done.stderr + own.stdout + own.stderr


def test_the_installed_package_is_typed_and_not_the_clone(installed: Path, tmp_path: Path) -> None:
    told = run(
        installed / "python",
        "-c",
        "import fencerow, pathlib; at = pathlib.Path(fencerow.__file__).parent; print(at, (at / 'py.typed').exists())",
        cwd=tmp_path,
    )
    place, typed = told.stdout.split()
    assert typed == "True"
    assert ROOT not in Path(place).parents
    version = run(installed / "fencerow", "version", cwd=tmp_path)
    assert version.returncode == 0, version.stderr
