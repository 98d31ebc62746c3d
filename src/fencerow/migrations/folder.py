"""From a folder of numbered files to migrations, refused as a whole when one of them cannot be right."""

from __future__ import annotations

import importlib.util
import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from types import ModuleType
from typing import Any

from fencerow.db.text import said_of
from fencerow.migrations.concurrent import unnamed_index
from fencerow.migrations.errors import InvalidMigrations
from fencerow.migrations.text import NO_TRANSACTION, Piece, ending_piece, pieces

NAME = re.compile(
    r"(?P<version>\d{1,18})_(?P<name>[A-Za-z0-9][A-Za-z0-9_-]*?)(?P<down>\.down)?\.(?P<kind>sql|py)"
)
DIALECTS = ("postgres", "sqlite")

Run = Callable[[Any], object]


@dataclass(frozen=True, slots=True)
class Script:
    """What one direction of a migration does: statements, or a function of the connection."""

    file: Path
    in_transaction: bool
    pieces: tuple[Piece, ...] = ()
    function: Run | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class ShardMigration:
    """One numbered migration. The checksum is over the text of its file, whatever its line endings are."""

    version: int
    name: str
    checksum: str
    up: Script
    down: Script | None = None

    def __str__(self) -> str:
        return f"{self.version:04d}_{self.name}"


def read_folder(folder: Path, dialect: str) -> list[ShardMigration]:
    """The migrations for one dialect in the order of their numbers: of the folder and its `postgres` or `sqlite`.

    Raises:
        InvalidMigrations: two files have one number, a name is not understood, or a file cannot work.
    """
    if not folder.is_dir():
        raise InvalidMigrations(
            f"there is no folder {folder}", "the migrator reads its migrations from it", "correct `folder`"
        )
    places = [folder, folder / dialect] if (folder / dialect).is_dir() else [folder]
    files = [path for place in places for path in sorted(place.iterdir()) if _is_migration(path)]
    ups = _by_version([path for path in files if not _parsed(path)["down"]])
    downs = _by_version([path for path in files if _parsed(path)["down"]])
    for version, path in downs.items():
        if version not in ups or _parsed(ups[version])["name"] != _parsed(path)["name"]:
            raise InvalidMigrations(
                f"{path.name} takes back a migration that is not there",
                f"expected {path.name.replace('.down', '')} beside it",
                "correct its number and name, or remove it",
            )
    if not ups:
        raise InvalidMigrations(
            f"{folder} has no migrations for {dialect}",
            "files such as 0001_create_messages.sql are expected, there or in a folder `postgres` or `sqlite` in it",
            "correct `folder`, or write the first migration",
        )
    return [_migration(ups[version], downs.get(version), dialect) for version in sorted(ups)]


def _is_migration(path: Path) -> bool:
    """Whether a file is meant as a migration. A name that almost is one must not be passed over in silence."""
    if path.suffix not in (".sql", ".py") or path.name.startswith(("_", ".")) or not path.is_file():
        return False
    if not NAME.fullmatch(path.name):
        raise InvalidMigrations(
            f"{path} is not named like a migration",
            "expected a number, an underscore and a name: 0007_add_index.sql, 0007_add_index.down.sql, 0008_fill.py",
            "rename it; if it is no migration, let its name begin with an underscore",
        )
    return True


def _parsed(path: Path) -> re.Match[str]:
    match = NAME.fullmatch(path.name)
    assert match is not None
    return match


def _by_version(paths: list[Path]) -> dict[int, Path]:
    found: dict[int, Path] = {}
    for path in paths:
        version = int(_parsed(path)["version"])
        if version in found:
            raise InvalidMigrations(
                f"{found[version]} and {path} have one number",
                "each number is one migration, so that every shard runs them in the same order",
                f"give one of them another number than {version}",
            )
        if version == 0:
            raise InvalidMigrations(
                f"{path} has the number 0", "migrations count from 1; 0 is before the first", "renumber it"
            )
        found[version] = path
    return found


def _migration(path: Path, down: Path | None, dialect: str) -> ShardMigration:
    match, text = _parsed(path), _text(path)
    checksum = sha256(text.encode()).hexdigest()
    if match["kind"] == "py":
        if down is not None:
            raise InvalidMigrations(
                f"{down.name} belongs to a migration in Python",
                "its down part is a function down(connection)",
                "move it there",
            )
        up_script, down_script = _python(path, text)
    else:
        up_script = _sql(path, text, dialect)
        down_script = None if down is None else _sql(down, _text(down), dialect)
    return ShardMigration(int(match["version"]), match["name"], checksum, up_script, down_script)


def _text(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8").removeprefix("\ufeff").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        raise InvalidMigrations(f"{path} is not UTF-8", str(error), "save it as UTF-8") from None


def _sql(path: Path, text: str, dialect: str) -> Script:
    found = pieces(text, dialect)
    ending = ending_piece(found)
    if ending is not None:
        raise InvalidMigrations(
            f"{path}, line {ending.line}: {ending.text.split()[0].upper()} begins or ends a transaction",
            "a migration and its row in the ledger are one transaction, which the migrator opens and commits",
            "leave it out; if the migration cannot run in a transaction, write: -- migrate: no transaction",
        )
    in_transaction = not NO_TRANSACTION.search(text)
    unnamed = None if in_transaction else unnamed_index(found)
    if unnamed is not None:
        raise InvalidMigrations(
            f"{path}, line {unnamed.line}: an index that is made concurrently has no name",
            "without a name nobody knows after a crash which index is incomplete",
            "give it a name",
        )
    return Script(path, in_transaction, tuple(found))


def _python(path: Path, text: str) -> tuple[Script, Script | None]:
    module = _imported(path)
    in_transaction = not NO_TRANSACTION.search(text)
    up, down = getattr(module, "up", None), getattr(module, "down", None)
    for function, name in ((up, "up"), (down, "down")):
        if (function is None and name == "up") or (function is not None and not callable(function)):
            raise InvalidMigrations(
                f"{path} has no function {name}", f"expected def {name}(connection)", "write it"
            )
        if inspect.iscoroutinefunction(function):
            raise InvalidMigrations(
                f"{path}: {name} is a coroutine",
                "a migration gets the driver's plain connection",
                "write `def` without async",
            )
    assert up is not None
    return Script(path, in_transaction, (), up), None if down is None else Script(
        path, in_transaction, (), down
    )


def _imported(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"fencerow_step_{path.stem}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise InvalidMigrations(
            f"{path} cannot be imported", said_of(error), "correct it; nothing ran"
        ) from error
    return module
