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

from fencerow import __version__
from tests.house.tree import ROOT, tracked

pytestmark = pytest.mark.prove

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
def proofs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built("wheel", SOURCE / "fencerow_proof", tmp_path_factory.mktemp("proofs"))


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built("sdist", ROOT, tmp_path_factory.mktemp("sdist"))


def in_wheel(path: Path) -> set[str]:
    with zipfile.ZipFile(path) as opened:
        return {name for name in opened.namelist() if ".dist-info/" not in name}


def of_the_package() -> set[str]:
    """Every file of the package, the documents of the demo among them, and the pytest plugin beside it."""
    return {*files_of("fencerow"), "pytest_fencerow.py"}


def files_of(package: str) -> set[str]:
    found = (path for path in (SOURCE / package).rglob("*") if path.is_file())
    return {str(path.relative_to(SOURCE)) for path in found if path.suffix not in (".pyc", ".so")}


def test_the_wheel_has_every_file_of_the_package_and_nothing_else(wheel: Path) -> None:
    names = in_wheel(wheel)
    assert names == of_the_package()
    for suffix, least in {".sql": 20, ".pdf": 10, "py.typed": 1}.items():
        assert sum(name.endswith(suffix) for name in names) >= least, suffix
    assert wheel.name.endswith("-py3-none-any.whl")


def test_the_proofs_are_a_wheel_of_their_own_with_all_that_is_theirs(proofs: Path, wheel: Path) -> None:
    beside = {"pyproject.toml", "README.md", "LICENSE", "NOTICE"}

    assert in_wheel(proofs) == files_of("fencerow_proof") - {f"fencerow_proof/{name}" for name in beside}
    assert in_wheel(proofs).isdisjoint(in_wheel(wheel))


def test_an_archive_of_the_proofs_makes_the_same_wheel(proofs: Path, tmp_path: Path) -> None:
    packed = built("sdist", SOURCE / "fencerow_proof", tmp_path)
    with tarfile.open(packed) as opened:
        opened.extractall(tmp_path / "unpacked", filter="data")
    (unpacked,) = (tmp_path / "unpacked").iterdir()

    again = built("wheel", unpacked, tmp_path)

    assert in_wheel(again) == in_wheel(proofs)


def test_the_two_wheels_name_each_others_very_version(wheel: Path, proofs: Path) -> None:
    assert f"Requires-Dist: fencerow-proof=={__version__}; extra == 'proof'" in metadata(wheel)
    assert f"Requires-Dist: fencerow=={__version__}" in metadata(proofs)
    assert f"Version: {__version__}" in metadata(wheel) and f"Version: {__version__}" in metadata(proofs)


def metadata(path: Path) -> list[str]:
    with zipfile.ZipFile(path) as opened:
        (name,) = (name for name in opened.namelist() if name.endswith(".dist-info/METADATA"))
        return opened.read(name).decode().splitlines()


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
    # Python compiles what it imports; pip would compile every file of every package.
    pip: list[str | Path] = [
        scripts / "python",
        "-m",
        "pip",
        "install",
        "-q",
        "--disable-pip-version-check",
        "--no-compile",
    ]
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


def test_a_check_says_what_to_install_until_the_proofs_are(
    installed: Path, proofs: Path, tmp_path: Path
) -> None:
    (tmp_path / "shop.py").write_text(
        "import sqlite3\nfrom fencerow import App\napp = App()\n@app.job\ndef sell() -> None:\n"
        "    with sqlite3.connect('shop.db') as shop:\n"
        "        shop.execute('INSERT INTO sold VALUES (1) ON CONFLICT DO NOTHING')\n"
        "def tables(url: str) -> None:\n"
        "    with sqlite3.connect('shop.db') as shop:\n"
        "        shop.execute('CREATE TABLE sold (n integer PRIMARY KEY)')\n"
    )
    check = (installed / "fencerow", "check", "shop:sell", "--setup", "shop:tables")

    without = run(*check, cwd=tmp_path)
    added = run(
        *(
            installed / "python",
            "-m",
            "pip",
            "install",
            "-q",
            "--no-deps",
            "--disable-pip-version-check",
            "--no-compile",
            proofs,
        ),
        cwd=tmp_path,
    )
    judged = run(*check, cwd=tmp_path)

    assert (without.returncode, len(without.stderr.splitlines())) == (2, 3), without.stderr
    assert 'pip install "fencerow[proof]"' in without.stderr
    assert added.returncode == 0, added.stderr
    assert judged.returncode == 0, judged.stdout + judged.stderr
    assert "idempotent re-run: yes" in judged.stdout
