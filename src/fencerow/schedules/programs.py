"""Which release of a program counts: its declarations have an order, so that an older one takes nothing back."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from fencerow.db.run import Row, Steps, as_int, as_int_or_none, execute, operation, text_or_none
from fencerow.schedules.definition import digest_of
from fencerow.schedules.definitions import WantedRow

UNFOLLOWED_S = 120.0  # so long nobody has looked after the entities of a head


@dataclass(frozen=True, slots=True)
class DeclaredRelease:
    """What one process declares: under which version, and the digest of all of it."""

    owner: str
    version: int
    digest: str


@dataclass(frozen=True, slots=True)
class CountingRelease(DeclaredRelease):
    """The release of a program that counts. Instants are microseconds since 1970."""

    declared_us: int
    declared_by: str | None
    contradicted_us: int | None
    contradicted_by: str | None
    now_us: int

    def differs(self, release: DeclaredRelease) -> bool:
        """Whether this process declares otherwise."""
        return self.digest != release.digest

    def in_words(self) -> str:
        """For people."""
        by = f" (by {self.declared_by})" if self.declared_by else ""
        return f"version {self.version}{by}"


def release_of(owner: str, version: int, declared: Iterable[WantedRow]) -> DeclaredRelease:
    """What these declarations are as a whole."""
    lines = sorted(f"{each.name} {each.kind} {each.digest}" for each in declared)
    return DeclaredRelease(owner, version, digest_of("\n".join(lines)))


def declare(release: DeclaredRelease, *, actor: str | None, take_back: bool) -> Steps[bool]:
    """Whether this release counts from now on."""
    return bool(
        (
            yield from execute(
                "declare_program",
                owner=release.owner,
                version=release.version,
                digest=release.digest,
                actor=actor,
                take_back=take_back,
            )
        )
    )


def counting(owner: str | None) -> Steps[list[CountingRelease]]:
    """The release of this program that counts, or those of all programs."""
    return [_counting(row) for row in (yield from execute("read_programs", owner=owner))]


@operation(alone=True, repeatable=True, writes="")
def read_programs(owner: str | None = None) -> Steps[list[CountingRelease]]:
    """The release of this program that counts, or those of all programs."""
    return (yield from counting(owner))


@operation(repeatable=True)
def contradict(release: DeclaredRelease, *, actor: str | None, trouble: str) -> Steps[bool]:
    """Note that a living worker declares otherwise than what counts, and whether it does so rightly; see `doctor`.

    Heads whose entities nobody looks after meanwhile say so.
    """
    noted = yield from execute(
        "contradict_program",
        owner=release.owner,
        version=release.version,
        digest=release.digest,
        actor=actor,
    )
    if noted:
        yield from execute("note_unfollowed", owner=release.owner, trouble=trouble, after_s=UNFOLLOWED_S)
    return bool(noted)


def _counting(row: Row) -> CountingRelease:
    owner, version, digest, declared_us, declared_by, contradicted_us, contradicted_by, now_us = row
    return CountingRelease(
        str(owner),
        as_int(version),
        str(digest),
        as_int(declared_us),
        text_or_none(declared_by),
        as_int_or_none(contradicted_us),
        text_or_none(contradicted_by),
        as_int(now_us),
    )
