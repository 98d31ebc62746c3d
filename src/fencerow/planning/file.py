"""The file of a plan: TOML or JSON, read into what its fields say."""

from __future__ import annotations

import tomllib
from pathlib import Path

import msgspec

from fencerow.planning.errors import InvalidPlan
from fencerow.planning.written import WrittenPlan

BYTES_MAX = 1_000_000
KINDS = (".toml", ".json")


def read_file(path: Path) -> WrittenPlan:
    """What the file says; whether it makes sense is asked later.

    Raises:
        InvalidPlan: it cannot be read, is neither TOML nor JSON, or has a field that no plan has.
    """
    if path.suffix.lower() not in KINDS:
        raise InvalidPlan(f"{path.name} is no plan", "expected a file .toml or .json", "name it so")
    try:
        with path.open("rb") as opened:
            text = opened.read(BYTES_MAX + 1)
    except OSError as error:
        raise InvalidPlan(
            f"{path} cannot be read: {error.strerror or type(error).__name__}",
            "expected a file with a plan",
            "correct the name, or the rights of the file",
        ) from None
    if len(text) > BYTES_MAX:
        raise InvalidPlan(f"{path.name} is too large", f"at most {BYTES_MAX} bytes are read", "shorten it")
    try:
        found = msgspec.json.decode(text) if path.suffix.lower() == ".json" else tomllib.loads(text.decode())
        return msgspec.convert(found, WrittenPlan)
    except msgspec.ValidationError as error:
        raise InvalidPlan(
            f"{path.name}: {error}",
            "docs/guide/capacity.md has all fields of a plan",
            "write at_once: slots are a worker's" if "`slots`" in str(error) else "correct it",
        ) from None
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        kind = path.suffix[1:].upper()
        raise InvalidPlan(
            f"{path.name} is no {kind}: {error}",
            f"a name that ends so is that of a {kind} file",
            "correct it",
        ) from None
