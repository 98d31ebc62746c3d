"""What lies in the store of large payloads and belongs to no job: found, and removed once nothing can refer to it.

An object is an orphan if its name is one that this database writes, no row refers to it, and
- its job is there, and is not live, or it is no result: a live attempt may have put its result and not yet ended, and a
  submit that is committed refers to what it put;
- or its job is nowhere, at two looks, it is older than `orphan_s`, and every transaction that was under way at the
  first look has ended: so no submit that put it may still commit.
Names are never used twice, so what was an orphan once stays one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

from fencerow.db.engine import Engine
from fencerow.db.run import Steps, as_int, execute, operation, text_or_none
from fencerow.payloads.outside.names import is_result, job_of
from fencerow.payloads.outside.owner import check_owner, database_of_payloads
from fencerow.payloads.outside.store import PayloadStore, StoredObject

PAGE = 500


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


def pages_of(store: PayloadStore, own: str) -> Iterator[list[StoredObject]]:
    """The objects below the database's own id, whatever they are called, some at a time."""
    objects = iter(store.list(f"{own}/"))
    while page := list(islice(objects, PAGE)):
        yield page


def unreferred(engine: Engine, own: str, page: Sequence[StoredObject]) -> tuple[list[str], list[str]]:
    """The names of those to which no row refers: first where the job is there, then where it is nowhere.

    Only what has the form of a name of ours is looked at.
    """
    ours = {each.name: of for each in page if (of := job_of(each.name, own)) is not None}
    jobs = engine.run(referred(sorted(set(ours.values())))) if ours else {}
    sure: list[str] = []
    doubtful: list[str] = []
    for name, job_id in ours.items():
        job = jobs.get(job_id)
        if job is None:
            doubtful.append(name)
        elif name not in job.names and not (job.live and is_result(name)):
            sure.append(name)
    return sure, doubtful


@dataclass(slots=True)
class Sweep:
    """Looks through a store, page by page, and remembers what it has seen of jobs that are nowhere, and nothing else:
    a store may have millions.

    Safe in every worker at once: it removes only what stays an orphan.
    """

    engine: Engine
    store: PayloadStore
    orphan_s: float
    _seen: dict[str, int] = field(default_factory=dict)  # with the transaction of the first look

    def _orphans(self, own: str, page: Sequence[StoredObject], still: dict[str, int]) -> list[str]:
        """Those of these objects that nothing refers to; those that may be such go into `still`. The page was listed
        before this looks at the rows."""
        old = [each for each in page if each.age_s >= self.orphan_s]
        if not old:
            return []
        # Before the rows are read: what was under way at the first look has ended by now, so they show what it did.
        first, here = self.engine.run(transactions_now())
        sure, doubtful = unreferred(self.engine, own, old)
        for name in doubtful:
            seen = self._seen.get(name, here)
            if name in self._seen and first >= seen:  # every transaction of then has ended
                sure.append(name)
            else:
                still[name] = seen
        return sure

    def remove(self) -> int:
        """All steps, one after the other; returns how many orphans were removed."""
        return sum(self.steps())

    def steps(self) -> Iterator[int]:
        """Look through all that this database wrote and remove the orphans. Each step blocks, and says how many it has
        removed: one or none. It may be left between two steps: the next round finds what is left.

        Raises:
            ConfigError: it is another database's store. StoreUnavailable: it does not answer.
        """
        own = self.engine.run(database_of_payloads())
        if next(iter(self.store.list("")), None):  # where nothing was put yet there may be no folder
            check_owner(self.store, own)
        still: dict[str, int] = {}
        for page in pages_of(self.store, own):
            for name in self._orphans(own, page, still):
                self.store.delete(name)
                yield 1
            yield 0
        self._seen = still
