"""How many jobs a bulk action means, by state: counted in short looks, until a time is over."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import msgspec

from fencerow.core.model.labels import encode_metadata, encode_tags
from fencerow.core.model.state import State
from fencerow.db.run import (
    Procedure,
    Steps,
    as_int,
    as_int_or_none,
    ask,
    execute,
    operation,
    text_or_none,
)
from fencerow.operators.finding import JobFilter
from fencerow.web.dashboard.bulk.meaning import HIGHEST_ID, LOWEST_ID, Meant

PORTION = 20_000  # jobs of one look: some tens of milliseconds


class ChosenJob(msgspec.Struct, frozen=True):
    """A job that was chosen on a page, without what is large in it."""

    id: str
    name: str
    queue: str
    key: str | None
    state: State
    submitted_at_us: int
    revived_at_us: int | None
    ended_at_us: int | None


@dataclass(frozen=True, slots=True)
class Counted:
    """How many match, by state. Not `whole`: the time was over, so there are this many or more."""

    by_state: dict[State, int] = field(default_factory=dict)
    whole: bool = True

    def among(self, states: Sequence[State]) -> int:
        """How many are in one of these states."""
        return sum(jobs for state, jobs in self.by_state.items() if state in states)


@dataclass(frozen=True, slots=True)
class _Portion:
    by_state: dict[State, int]
    looked_at: int
    lowest: str


@operation(alone=True, repeatable=True, writes="")
def counted_portion(chosen: JobFilter, *, at_us: int, below: str, lowest: str) -> Steps[_Portion]:
    """One look: the jobs below an id that match, by state, of the next `PORTION` that there are."""
    rows = yield from execute(
        "counted_matching",
        queue=chosen.queue,
        name=chosen.name,
        states=[each.value for each in chosen.states] or None,
        scope=chosen.scope,
        key=chosen.key,
        tags=encode_tags(list(chosen.tags)),
        metadata=encode_metadata(chosen.metadata or {}),
        at=at_us,
        below=below,
        lowest=lowest,
        portion=PORTION,
    )
    by_state = {State(str(row[0])): as_int(row[1]) for row in rows if row[1]}
    return _Portion(
        by_state, sum(as_int(row[2]) for row in rows), min((str(row[3]) for row in rows), default=lowest)
    )


@operation(alone=True, repeatable=True, writes="")
def chosen_jobs(ids: Sequence[str]) -> Steps[list[ChosenJob]]:
    """These jobs, the newest id first; one that is nowhere is not in the answer."""
    rows = yield from execute("chosen_jobs", ids=list(ids))
    return [
        ChosenJob(
            str(row[0]), str(row[1]), str(row[2]), text_or_none(row[3]), State(str(row[4])),
            as_int(row[5]), as_int_or_none(row[6]), as_int_or_none(row[7]),
        )
        for row in rows
    ]  # fmt: skip


def counting(
    meant: Meant, at_us: int, below: str | None, *, limit_s: float, looks_max: int
) -> Procedure[Counted]:
    """All that the search means until `at_us`, in every state that it names."""
    chosen = replace(meant.chosen(at_us, below), states=meant.search.chosen.states)
    before, lowest = chosen.before_id or HIGHEST_ID, meant.lowest_id(at_us) or LOWEST_ID
    found = Counted()
    until = time.monotonic() + limit_s
    for _ in range(looks_max):
        portion = yield from ask(counted_portion(chosen, at_us=at_us, below=before, lowest=lowest))
        for state, jobs in portion.by_state.items():
            found.by_state[state] = found.by_state.get(state, 0) + jobs
        if portion.looked_at < PORTION:
            return found
        before = portion.lowest
        if time.monotonic() >= until:
            break
    return replace(found, whole=False)
