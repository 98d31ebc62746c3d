"""What the doctor says of the store of large payloads: whether it answers, whose it is, what nobody refers to,
and what others have put there."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import islice

from fencerow.core.config import CoreConfig
from fencerow.core.finding import Finding, info, ok, warn
from fencerow.core.wing import Check
from fencerow.db.engine import Engine
from fencerow.db.text import amount
from fencerow.payloads.outside.calls import StoreCalls
from fencerow.payloads.outside.owner import OwnStore, check_owner, database_of_payloads, others_of
from fencerow.payloads.outside.places import store_at
from fencerow.payloads.outside.store import PayloadStore
from fencerow.payloads.outside.sweeping import PAGE, pages_of, unreferred
from fencerow.payloads.settings import PayloadSettings

OBJECTS_MAX = 10_000
NAME = "payloads outside"


def examine_outside(engine: Engine, config: CoreConfig) -> Iterator[Finding]:
    """Nothing is said where no store is set. Of at most 10,000 objects; errors of the store are findings themselves."""
    settings = PayloadSettings.of(config)
    if settings.outside_store is not None:
        store, calls = store_at(settings.outside_store), StoreCalls(settings.outside_timeout_s)
        yield from _examined(store, calls, engine, config)


def check_of(outside: OwnStore) -> Check:
    """The same of the store that an application has, whether it was set or given in code."""
    return Check(NAME, partial(_examined, outside.store, outside.calls))


def _examined(
    store: PayloadStore, calls: StoreCalls, engine: Engine, config: CoreConfig
) -> Iterator[Finding]:
    own = engine.run(database_of_payloads())
    calls.run(lambda: check_owner(store, own))
    yield from _orphans(engine, store, calls, own, PayloadSettings.of(config).outside_orphan_s)
    if others := others_of(calls.run(lambda: [each.name for each in islice(store.list(""), PAGE)]), own):
        yield warn(
            NAME,
            f"the store has things that this database did not write, such as {others[0][:200]}",
            "they stay; give this database a folder or prefix of its own",
        )


def _orphans(
    engine: Engine, store: PayloadStore, calls: StoreCalls, own: str, orphan_s: float
) -> Iterator[Finding]:
    found = 0
    orphans: list[str] = []
    pages = pages_of(store, own)
    while found < OBJECTS_MAX and (page := calls.run(partial(next, pages, None))) is not None:
        for names in unreferred(engine, own, page):  # a submit under way is among them, for a moment
            orphans += names
        found += len(page)
    shown = amount(found, "object") if found < OBJECTS_MAX else f"the first {found} objects"
    if orphans:
        yield info(
            NAME,
            f"{amount(len(orphans), 'object')} of {shown} that no job refers to, such as {orphans[0]}",
            f"workers remove them once they are older than {orphan_s:g} s (outside_orphan_s)",
        )
    else:
        yield ok(NAME, f"{shown}, each of a job")
