"""What the doctor says of the store of large payloads: whether it answers, whose it is, and what nobody refers to."""

from __future__ import annotations

from collections.abc import Iterator

from fencerow.core.config import CoreConfig
from fencerow.core.db.engine import Engine
from fencerow.core.finding import Finding, info, ok
from fencerow.core.model.text import amount
from fencerow.payloads.outside.places import store_at
from fencerow.payloads.outside.sweeping import PAGE, check_owner, unreferred
from fencerow.payloads.settings import PayloadSettings

OBJECTS_MAX = 10_000
NAME = "payloads outside"


def examine_outside(engine: Engine, config: CoreConfig) -> Iterator[Finding]:
    """Nothing is said where no store is set. Of at most 10,000 objects; errors of the store are findings themselves."""
    settings = PayloadSettings.of(config)
    if settings.outside_store is None:
        return
    store = store_at(settings.outside_store)
    check_owner(engine, store, mark=False)
    found, after = 0, ""
    orphans: list[str] = []
    while found < OBJECTS_MAX and (page := store.list(after, PAGE)):
        for names in unreferred(engine, page):  # a submit under way is among them, for a moment
            orphans += names
        found += len(page)
        after = page[-1].name
    shown = amount(found, "object") if found < OBJECTS_MAX else f"the first {found} objects"
    if orphans:
        yield info(
            NAME,
            f"{amount(len(orphans), 'object')} of {shown} that no job refers to, such as {orphans[0]}",
            f"workers remove them once they are older than {settings.outside_orphan_s:g} s (outside_orphan_s)",
        )
    else:
        yield ok(NAME, f"{shown}, each of a job")
