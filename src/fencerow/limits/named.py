"""The limits that jobs name: which of them are defined, and what each lets start now.

All jobs that name `github` share it. If it is defined per key, they name `github/tenant-7`, and each of these names has
the whole limit for itself; a definition of that very name wins over it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec

from fencerow.db.removal import Looked
from fencerow.db.run import Steps, as_int, execute, execute_ahead, first_column, operation
from fencerow.limits.definition import Limit, check_name
from fencerow.limits.errors import UnknownLimit
from fencerow.limits.locked import LockedLimit, lock_of, looked_at, queue_of, remembered, understood
from fencerow.turns.gates import ROOM_MAX
from fencerow.turns.limiting import Held, LimitRule

UNREAD_S = 2.0  # until the next look at a limit that means nothing here: it may where another worker runs


@dataclass(frozen=True, slots=True)
class NamedLimit:
    """What a hand-over may give under a limit that it has locked."""

    locked: LockedLimit

    @property
    def counts(self) -> bool:
        """Whether it must be known how many have a turn."""
        return self.locked.counts or self.locked.is_paced

    @property
    def is_paced(self) -> bool:
        """Whether it must be known if somebody is left who waits."""
        return self.locked.is_paced

    @property
    def is_stopped(self) -> bool:
        """Whether nobody is to start who has not."""
        return self.locked.is_stopped

    @property
    def news(self) -> str | None:
        """What people are to be told of it."""
        return self.locked.news

    def room(self, held: Held) -> int:
        """How many may get a turn now."""
        return self.locked.room(held, wanted=ROOM_MAX).count

    def again_us(self, held: Held, given: Sequence[str]) -> int | None:
        """When time makes room after these jobs got a turn, or somebody else may see room."""
        if self.locked.limit is None:
            return self.locked.now_us + int(UNREAD_S * 1e6)
        return self.locked.after(given).room(held.beside(len(given)), wanted=1).again_us

    def keep(self, given: Sequence[str], *, waits: bool | None) -> Steps[None]:
        """Keep what is remembered after these jobs got a turn."""
        if (state := self.locked.to_keep(given, waits=waits)) is not None:
            yield from execute("keep_limit_state", name=self.locked.name, state=state)


def locked(names: Sequence[str]) -> Steps[Mapping[str, LimitRule]]:
    """Those of these limits that are defined, kept from being changed until the transaction ends."""
    found: dict[str, LockedLimit] = {}
    told: set[str] = set()
    # A name itself comes after the part before its slash, and so wins.
    yield from execute_ahead("keep_limits", locks=sorted({lock_of(name) for name in names}))
    for name, known, definition, state, now_us in (
        yield from execute("read_named_limits", names=list(names))
    ):
        limit = understood(str(known), str(definition))
        if limit is not None and limit.breaker is not None:
            told.add(str(name))  # a definition of this very name may have won that has no breaker
        if _binds(limit, str(known), str(name)):
            found[str(name)] = LockedLimit.understood(str(name), limit, state, now_us)
    return {each.name: NamedLimit(each) for each in (yield from looked_at(list(found.values()), told))}


@operation(repeatable=True)
def forget_states(after: str, *, age_s: float, limit: int) -> Steps[Looked[str]]:
    """Forget what is remembered of keys under limits, among so many names after this one.

    It goes on after "" when that was the last. What goes has not changed for so long and is as good as
    new: its bucket is full, and no failure counts. One under which somebody starts meanwhile stays.
    """
    rows = yield from execute("limit_states_after", after=after, limit=limit)
    idle = [
        [str(name), str(state)]
        for name, state, aged_us, now_us in rows
        if as_int(aged_us) > age_s * 1e6 and remembered(str(state)).is_as_new(as_int(now_us))
    ]
    gone = 0
    if idle:
        states = msgspec.json.encode(idle).decode()
        gone = len((yield from execute("forget_limit_states", states=states)))
    return Looked(str(rows[-1][0]) if len(rows) == limit else "", len(rows), gone)


@operation(alone=True, repeatable=True, writes="")
def defined(names: Sequence[str]) -> Steps[list[str]]:
    """Those of these limits that are defined, for a role that may only submit, too."""
    return first_column((yield from execute("defined_limits", names=list(names))))


def refuse_unknown(names: Sequence[str]) -> Steps[None]:
    """Look whether jobs may name these limits.

    Raises:
        UnknownLimit: nobody defined one of them, or it is of another kind.
    """
    for name in names:
        if queue_of(check_name(name)) is not None:
            raise UnknownLimit(
                f"the job names the limit {name}",
                "one of a queue or of the fleet binds its jobs without being named",
                "leave it out of limits=, and define one of another name if it is to bind this job alone",
            )
    rows = yield from execute("defined_limits", names=list(names))
    known = {str(name): understood(str(name), str(definition)) for name, definition in rows}
    for name in names:
        base, slash, _ = name.partition("/")
        if any(each in known and _binds(known[each], each, name) for each in (name, base)):
            continue
        if base not in known:
            raise UnknownLimit(
                f"the job names the limit {name}, which nobody defined",
                "nothing would bind it, so nothing was stored",
                f"`fencerow limits set {base} --at-once 4{' --per-key' if slash else ''}` defines it,"
                " or App(limits=[...]) of the program that submits",
            )
        raise UnknownLimit(
            f"the job names the limit {name}",
            f"{base} has {'no keys' if slash else 'a limit for each key'}, so nothing would bind it",
            f"name {base}" if slash else f"name {base}/ and a key",
        )


def _binds(limit: Limit | None, known: str, name: str) -> bool:
    """Whether the limit that is `known` binds who names this one. What cannot be understood binds all, and lets none
    start."""
    if limit is None:
        return known == name or name.startswith(f"{known}/")
    return name.startswith(f"{known}/") if limit.per_key else known == name
