"""Rows of entities follow the list of a user's function: one worker asks it, and what it lists is what there is.

A list is not believed blindly: one that lacks more than half of what is there is mostly cut short.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from fencerow.db.run import Steps, execute, operation
from fencerow.schedules.definitions import (
    READ_ROWS,
    RowKind,
    RowOrigin,
    WantedRow,
    locked,
    put_rows,
    undeclare_these,
)
from fencerow.schedules.errors import NoEntities
from fencerow.schedules.listing import Listing

TROUBLE_MAX = 500


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
class Compared:
    """How the rows that are there differ from a list. `declared`: how many of them were listed before.

    `people`: people made them, and they are listed. `news`: rows that are missing or otherwise, or were not listed.
    """

    declared: int = 0
    people: list[str] = field(default_factory=list)
    vanished: list[str] = field(default_factory=list)
    news: list[WantedRow] = field(default_factory=list)


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
    compared = yield from _compared(name, listing)
    vanished, declared = compared.vanished, compared.declared
    missing = [] if shrinks or len(vanished) <= max(1, declared // 2) else vanished
    removed, paused = (yield from undeclare_these(name, vanished)) if not missing else ([], [])
    put = yield from put_rows(compared.news, RowOrigin.CODE, owner, actor)
    found = [listing.trouble, _cut_short(name, len(missing), declared) if missing else None]
    trouble = " ".join(each for each in found if each is not None)[:TROUBLE_MAX] or None
    yield from execute("refreshed", name=name, trouble=trouble)
    return Refreshed(
        [entity for _, entity in put.made],
        [entity for _, entity in put.changed],
        removed,
        compared.people,
        paused=paused,
        missing=missing,
        invalid=listing.invalid,
        trouble=trouble,
    )


def _compared(name: str, listing: Listing) -> Steps[Compared]:
    """Look at all rows, so many at once: while they are fetched, and while they are sorted, no event loop goes on."""
    declared, people, vanished, news = 0, list[str](), list[str](), list[WantedRow]()
    seen: set[str] = set()
    after = ""
    while page := (yield from execute("entities_of", name=name, after=after, limit=READ_ROWS)):
        for entity, digest, origin, undeclared in page:
            after = str(entity)
            wanted = listing.rows.get(after)
            if wanted is not None:
                seen.add(after)
            if origin == RowOrigin.PERSON:
                people += [] if wanted is None else [after]
                continue
            declared += not undeclared
            if wanted is None:
                if not undeclared and not listing.nameless and after not in listing.invalid:
                    vanished.append(after)
            elif undeclared or digest != wanted.digest:
                news.append(wanted)
        if len(page) < READ_ROWS:
            break
    news += [row for entity, row in listing.rows.items() if entity not in seen]
    return Compared(declared, people, vanished, news)


def _cut_short(name: str, missing: int, of: int) -> str:
    return str(
        NoEntities(
            f"the list of schedule {name} lacks {missing} of {of} entities at once",
            "that is mostly a mistake of its source, so no row was removed; what is new was made",
            f"if they are gone, say so: `fencerow schedules refresh {name} --shrinks -A app`",
        )
    )
