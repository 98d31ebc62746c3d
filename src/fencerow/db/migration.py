"""The migrations of our own schema as they lie in a package: numbered files, and the parts of each."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from hashlib import sha256

from fencerow.db.query_files import folder_of

MIGRATION = re.compile(r"(\d{4})_([a-z_]+)\.sql")
COMPATIBLE = re.compile(r"^--\s*compatible_from:\s*(\d+)", re.MULTILINE)
PART = re.compile(r"^-- (next transaction|built concurrently):.*$", re.MULTILINE)
INDEX = re.compile(r"^CREATE (?:UNIQUE )?INDEX (\w+)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class MigrationPart:
    """One part of a migration. `concurrently`: indexes that the migrator makes beside others' work."""

    text: str
    concurrently: bool


@dataclass(frozen=True, slots=True)
class Migration:
    """One migration of the schema: a numbered file, also a named query so that explorers can stop inside it.

    A file may consist of parts, divided by `-- next transaction: why` or `-- built concurrently: why`. Each is
    committed by itself and noted with it, so that what takes long holds no lock that anybody waits for, and no part
    runs twice. Each must leave a schema with which workers of the migration before go on. Below `built concurrently`
    stand indexes alone, plainly written.
    """

    version: int
    name: str
    text: str
    compatible_from: int
    checksum: str

    @property
    def parts(self) -> list[MigrationPart]:
        """The parts, in order."""
        heads = list(PART.finditer(self.text))
        kinds = ["next transaction", *(match[1] for match in heads)]
        starts = [0, *(match.end() for match in heads)]
        ends = [*(match.start() for match in heads), len(self.text)]
        return [
            MigrationPart(self.text[start:end], concurrently=kind == "built concurrently")
            for kind, start, end in zip(kinds, starts, ends, strict=True)
        ]

    @property
    def built_concurrently(self) -> list[str]:
        """The indexes that are made beside the work of others, in order."""
        return [name for part in self.parts if part.concurrently for name in INDEX.findall(part.text)]

    def part(self, number: int) -> str:
        """The name of the query with this part: the last has the migration's own."""
        return self.name if number == len(self.parts) - 1 else f"{self.name}_part_{number + 1}"


@cache  # each start of a worker compares them with the database, and one process may start many
def migrations(package: str, folder: str) -> tuple[Migration, ...]:
    """The migrations of a dialect in order; the checksum is over the text as it lies in the package."""
    schema = folder_of(package).joinpath(folder, "schema")
    if not schema.is_dir():
        return ()
    found = []
    for file in sorted(schema.iterdir(), key=lambda entry: entry.name):
        match = MIGRATION.fullmatch(file.name)
        if match:
            text = file.read_text("utf-8")
            oldest = COMPATIBLE.search(text)
            found.append(
                Migration(
                    int(match[1]),
                    f"schema_{match[1]}_{match[2]}",
                    text,
                    int(oldest[1]) if oldest else int(match[1]),
                    sha256(text.encode()).hexdigest(),
                )
            )
    return tuple(found)
