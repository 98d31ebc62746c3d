"""Rows of entities follow the list of a user's function: one worker asks it, and what it lists is what there is.

A list is not believed blindly: one that lacks more than half of what is there is mostly cut short.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from fencerow.db.run import Rows, Steps, execute, operation
from fencerow.schedules.definitions import RowKind, RowOrigin, WantedRow, locked, put_rows, undeclare
from fencerow.schedules.errors import NoEntities

TROUBLE_MAX = 500


@dataclass(frozen=True, slots=True)
class Listing:
    """What a function listed. `invalid`: entities that cannot be used, by name, and why; their rows stay as they are.

    `nameless`: members of which not even the name can be read. Each may stand for any row, so none is removed then.
    `trouble`: what is wrong with the list, for people.
    """

    rows: list[WantedRow]
    invalid: dict[str, str] = field(default_factory=dict)
    nameless: list[str] = field(default_factory=list)
    trouble: str | None = None


@dataclass(frozen=True, slots=True)
class Refreshed:
    """What came of a list of entities. `is_stale`: another definition stands there, so nothing was changed.

    `kept`: a person made the row. `paused`: no longer listed, but a person paused it, so its row stays, without a fire.
    `missing`: no longer listed, and so many at once that none of them was removed. `invalid`: they cannot be used, and
    why; their rows stay as they are. `trouble`: what is wrong with the list.
    """

    made: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)
    is_stale: bool = False
    paused: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    invalid: dict[str, str] = field(default_factory=dict)
    trouble: str | None = None


@dataclass(frozen=True, slots=True)
class StandingEntity:
    """A row that is there."""

    digest: str
    origin: RowOrigin
    undeclared: bool


@operation(alone=True, repeatable=True)
def claim_refresh(name: str, digest: str, *, every_s: float) -> Steps[bool]:
    """Whether this worker is to look at the list of entities now; nobody else does before `every_s` have passed."""
    return bool((yield from execute("claim_refresh", name=name, digest=digest, every_s=every_s)))


@operation(alone=True, repeatable=True)
def refresh_sooner(name: str, digest: str, *, trouble: str, soon_s: float) -> Steps[None]:
    """The list could not be had: say why, and have it looked at again soon."""
    yield from execute("refresh_sooner", name=name, digest=digest, trouble=trouble, soon_s=soon_s)


@operation(repeatable=True, computes=True)
def refresh(
    name: str,
    digest: str,
    listing: Listing,
    *,
    owner: str,
    actor: str | None,
    shrinks: bool = False,
) -> Steps[Refreshed]:
    """Keep the rows of the entities in step with their list: new ones are made, those that vanished go.

    If more than half of them vanished at once, none goes, unless somebody says that it `shrinks`; what cannot be used
    leaves its old row as it is. Guard: the head is as this program declares it, and stays so until the end, because it
    is locked. What a person made stays as it is. May be repeated.
    """
    head = yield from locked(name, "")
    if not head or head[0].kind is not RowKind.HEAD or head[0].digest != digest:
        return Refreshed(is_stale=True)
    standing = _standing((yield from execute("entities_of", name=name)))
    listed = {each.entity for each in listing.rows}
    people = {entity for entity, row in standing.items() if row.origin is RowOrigin.PERSON}
    declared = {entity for entity, row in standing.items() if entity not in people and not row.undeclared}
    vanished = [] if listing.nameless else sorted(declared - listed - listing.invalid.keys())
    missing = [] if shrinks or len(vanished) <= max(1, len(declared) // 2) else vanished
    removed, paused = (yield from undeclare(name, vanished)) if vanished and not missing else ([], [])
    news = [each for each in listing.rows if each.entity not in people and _is_news(each, standing)]
    put = yield from put_rows(news, RowOrigin.CODE, owner, actor)
    found = [listing.trouble, _cut_short(name, len(missing), len(declared)) if missing else None]
    trouble = " ".join(each for each in found if each is not None)[:TROUBLE_MAX] or None
    yield from execute("refreshed", name=name, trouble=trouble)
    return Refreshed(
        [entity for _, entity in put.made],
        [entity for _, entity in put.changed],
        sorted(removed),
        sorted(people & listed),
        paused=sorted(paused),
        missing=missing,
        invalid=listing.invalid,
        trouble=trouble,
    )


def _standing(rows: Rows) -> dict[str, StandingEntity]:
    return {
        str(entity): StandingEntity(str(digest), RowOrigin(str(origin)), bool(undeclared))
        for entity, digest, origin, undeclared in rows
    }


def _is_news(wanted: WantedRow, standing: dict[str, StandingEntity]) -> bool:
    """Whether its row is missing, is otherwise, or was no longer listed."""
    row = standing.get(wanted.entity)
    return row is None or row.undeclared or row.digest != wanted.digest


def _cut_short(name: str, missing: int, of: int) -> str:
    return str(
        NoEntities(
            f"the list of schedule {name} lacks {missing} of {of} entities at once",
            "that is mostly a mistake of its source, so no row was removed; what is new was made",
            f"if they are gone, say so: `fencerow schedules refresh {name} --shrinks -A app`",
        )
    )
