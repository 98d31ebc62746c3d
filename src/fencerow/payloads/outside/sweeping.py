"""What lies in the store of large payloads and belongs to no job: found, and removed once nothing can refer to it.

An object is an orphan if no row refers to it, and
- its job is there, and is not live, or it is no result: a live attempt may have put its result and not yet ended, and a
  submit that is committed refers to what it put;
- or its job is nowhere, at two looks, it is older than `orphan_s`, and every transaction that was under way at the
  first look has ended: so no submit that put it may still commit.
Names are never used twice, so what was an orphan once stays one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from fencerow.core.db.engine import Engine
from fencerow.core.db.run import Steps, as_int, execute, operation, text_or_none
from fencerow.core.errors import ConfigError, PayloadMissing
from fencerow.payloads.outside.store import PayloadStore, StoredObject

PAGE = 500
OWNER = "0-owner/database"
ID = re.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


@dataclass(frozen=True, slots=True)
class Referred:
    """How the job of some object stands, and which objects its rows refer to."""

    live: bool
    names: frozenset[str]


@operation(alone=True, repeatable=True, writes="")
def referred(ids: Sequence[str]) -> Steps[dict[str, Referred]]:
    """What the rows of these jobs refer to; a job that is nowhere is left out."""
    found: dict[str, Referred] = {}
    for job_id, live, args, result in (yield from execute("referred_payloads", ids=list(ids))):
        before = found.get(str(job_id), Referred(False, frozenset()))
        names = {text for text in (text_or_none(args), text_or_none(result)) if text is not None}
        found[str(job_id)] = Referred(before.live or bool(live), before.names | names)
    return found


@operation(repeatable=True)
def transactions_now() -> Steps[tuple[int, int]]:
    """The first transaction that has not ended, and this one, which is later than all that have written by now.

    On SQLite it waits for the one that writes to end, and says Busy if it does not.
    """
    ((first, own),) = yield from execute("transactions_now")
    return as_int(first), as_int(own)


@operation(alone=True, repeatable=True, writes="")
def database_of_payloads() -> Steps[str]:
    """Which database this is."""
    ((name,),) = yield from execute("database_of_payloads")
    return str(name)


def check_owner(engine: Engine, store: PayloadStore, *, mark: bool) -> None:
    """Whether the store is this database's; with `mark` one that is nobody's is from now on.

    Raises:
        ConfigError: it is another database's, whose objects would all be orphans here. Nothing was removed.
    """
    own = engine.run(database_of_payloads()).encode()
    try:
        found = store.get(OWNER)
    except PayloadMissing:
        if mark:
            store.put(OWNER, own)
            found = store.get(OWNER)  # of two that marked it at once, one is told
        else:
            return
    if found != own:
        raise ConfigError(
            f"outside_store belongs to the database {found.decode(errors='replace')[:200]}",
            f"this one is {own.decode()[:200]}: what lies there would be taken for orphans, so nothing is removed",
            f"give each database a folder or prefix of its own; if it has moved, remove {OWNER} in the store",
        )


def unreferred(engine: Engine, page: Sequence[StoredObject]) -> tuple[list[str], list[str]]:
    """The names of those to which no row refers: first where the job is there, then where it is nowhere."""
    ids = sorted({job for job in map(_job_of, page) if ID.fullmatch(job)})
    jobs = engine.run(referred(ids)) if ids else {}
    sure: list[str] = []
    doubtful: list[str] = []
    for each in page:
        job = jobs.get(_job_of(each))
        if each.name == OWNER:
            continue
        if job is None:
            doubtful.append(each.name)
        elif each.name not in job.names and not (job.live and "/result-" in each.name):
            sure.append(each.name)
    return sure, doubtful


@dataclass(slots=True)
class Sweep:
    """Looks through a store, page by page, and remembers what it has seen of jobs that are nowhere.

    Safe in every worker at once: it removes only what stays an orphan.
    """

    engine: Engine
    store: PayloadStore
    orphan_s: float
    _seen: dict[str, int] = field(default_factory=dict)  # with the transaction of the first look

    def orphans(self, page: Sequence[StoredObject]) -> list[str]:
        """Those of these objects that nothing refers to. The page was listed before this looks at the rows."""
        old = [each for each in page if each.age_s >= self.orphan_s]
        if not old:
            return []
        # Before the rows are read: what was under way at the first look has ended by now, so they show what it did.
        first, own = self.engine.run(transactions_now())
        sure, doubtful = unreferred(self.engine, old)
        return [*sure, *self._ended(doubtful, first, own)]

    def _ended(self, names: Sequence[str], first: int, own: int) -> list[str]:
        """Those that were seen before, at a look since which every transaction of then has ended."""
        before = {name: self._seen.get(name) for name in names}
        self._seen |= {name: own for name, seen in before.items() if seen is None}
        return [name for name, seen in before.items() if seen is not None and first >= seen]

    def remove(self) -> int:
        """Look through the whole store and remove the orphans; returns how many. Blocks.

        Raises:
            ConfigError: it is another database's store. StoreUnavailable: it does not answer.
        """
        check_owner(self.engine, self.store, mark=True)
        removed, after = 0, ""
        seen: set[str] = set()
        while page := self.store.list(after, PAGE):
            for name in self.orphans(page):
                self.store.delete(name)
                self._seen.pop(name, None)
                removed += 1
            seen.update(each.name for each in page)
            after = page[-1].name
        self._forget(seen)
        return removed

    def _forget(self, seen: Iterable[str]) -> None:
        kept = set(seen)
        self._seen = {name: at for name, at in self._seen.items() if name in kept}


def _job_of(each: StoredObject) -> str:
    return each.name.partition("/")[0]
