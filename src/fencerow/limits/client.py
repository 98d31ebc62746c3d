"""`client.limits`: look at limits and change them; sync and async."""

from __future__ import annotations

from collections.abc import Sequence

import fencerow.limits.limits as limits
import fencerow.limits.looking as looking
from fencerow.core.client.base import Verbs
from fencerow.core.errors import Busy, InvalidInput, NotPermitted
from fencerow.core.model.seconds import is_finite
from fencerow.core.model.submission import Submission
from fencerow.core.store.hints import ARRIVED
from fencerow.core.verb import averb, verb
from fencerow.db.run import Procedure, ask
from fencerow.db.text import check_text, shown
from fencerow.limits.definition import Limit, check_name
from fencerow.limits.errors import LimitConflict, UnknownLimit
from fencerow.limits.limits import LimitRecord
from fencerow.limits.looking import LimitTurns
from fencerow.limits.named import defined

REASON_LENGTH_MAX = 500
WAITING = 20
WAITING_MAX = 10_000
TRIES = 20  # of a change that others come before


class LimitVerbs(Verbs):
    """Looks at limits, makes them, and changes them while jobs run. Each method has an async twin with an `a` in
    front."""

    @verb
    def known(self) -> Procedure[list[LimitRecord]]:
        """All limits, by name."""
        return (yield from ask(limits.read_limits()))

    aknown = averb(known)

    @verb
    def get(self, name: str) -> Procedure[LimitRecord]:
        """The limit of this name.

        Raises:
            UnknownLimit: nobody defined it. InvalidInput: no limit can have such a name.
        """
        return (yield from _reading(check_name(name)))

    aget = averb(get)

    @verb
    def look(self, name: str, *, waiting: int = WAITING) -> Procedure[LimitTurns]:
        """Who has the turns of this limit, and the first `waiting` jobs that wait for one. Nothing is locked.

        Of a limit per key `name` is NAME/KEY: each key has turns of its own.

        Raises:
            UnknownLimit: nobody defined it. InvalidInput: no limit can have such a name, or `waiting` is not from 1 to
                10,000.
        """
        if not is_finite(waiting) or not 1 <= waiting <= WAITING_MAX:
            raise InvalidInput(
                f"waiting is {shown(waiting)}", f"1 to {WAITING_MAX} are listed", "correct waiting"
            )
        found = yield from ask(looking.look(check_name(name), limit=waiting))
        if found is None:
            raise _unknown(name)
        return found

    alook = averb(look)

    @verb
    def define(self, limit: Limit, *, reason: str | None = None) -> Procedure[bool]:
        """Make a limit, or put this definition in the place of the one there is; returns false if that is the same.

        It counts from the next start on, in all processes. What runs goes on: with a lower number than jobs run,
        nothing starts until enough of them have ended. A program that declares the same limit keeps what was set here
        until its declaration has a higher `version`. May be repeated.

        Raises:
            InvalidInput: the reason cannot be used, or it is no limit.
            Busy: others change it all the time.
        """
        _check(limit, reason)
        for _ in range(TRIES):
            known = yield from ask(limits.read_limits([limit.name]))
            if known and known[0].definition == limit.document():
                return False
            if (yield from self._written(limit, known, reason)):
                self._client.engine.wake([ARRIVED])  # who waits may have room now
                return True
        raise Busy(f"the limit {limit.name} is changed by others all the time", "", "try again later")

    adefine = averb(define)

    @verb
    def remove(self, name: str) -> Procedure[None]:
        """Forget a limit: from the next start on it binds nobody, and jobs that wait under it go on. Submits that
        name it are refused. Programs that declare it make it again when they start, or submit a job that names it.

        Raises:
            UnknownLimit: nobody defined it. Busy: others change it all the time.
        """
        for _ in range(TRIES):
            known = yield from _reading(check_name(name))
            if (yield from ask(limits.remove(known.name, revision=known.revision))):
                self._client.engine.wake([ARRIVED])
                return
        raise Busy(f"the limit {name} is changed by others all the time", "", "try again later")

    aremove = averb(remove)

    def _written(self, limit: Limit, known: Sequence[LimitRecord], reason: str | None) -> Procedure[bool]:
        actor = self._client.actor
        if not known:
            return (yield from ask(limits.define(limit, actor=actor, reason=reason)))
        seen = known[0].revision
        return (yield from ask(limits.redefine(limit, revision=seen, actor=actor, reason=reason)))


def declaring(declared: Sequence[Limit], *, actor: str | None) -> Procedure[list[str]]:
    """Make the limits that a program declares; returns the names of those that this changed.

    What people have set since stays, and what a newer program has declared.

    Raises:
        LimitConflict: another program declares something else under the same version. Nothing more is changed.
    """
    changed = []
    for limit in declared:
        found = yield from ask(limits.declare(limit, actor=actor))
        if found.changed:
            changed.append(limit.name)
        elif found.version == limit.version and found.definition != limit.document():
            there = Limit.of_document(limit.name, found.definition or "{}")
            raise LimitConflict(
                f"the limit {limit.name} is declared as `{limit}` here, and as `{there}` by another program",
                f"both under version {limit.version}, so nobody knows which one counts",
                f"raise the version of the one that counts: Limit({limit.name!r}, ..., version={limit.version + 1})",
            )
    return changed


def making_missing(
    declared: Sequence[Limit], actor: str | None, error: InvalidInput, submissions: Sequence[Submission]
) -> Procedure[bool]:
    """After a submit that was refused: make the limits that it names, this program declares and nobody has made.

    Returns false if there are none: then something else is wrong.

    Raises:
        UnknownLimit: this program's role may not make them.
    """
    if not isinstance(error, UnknownLimit):
        return False
    named = {name for each in submissions for name in each.job.limits or ()}
    named |= {name.partition("/")[0] for name in named}
    wanted = [limit for limit in declared if limit.name in named]
    known = yield from ask(defined([limit.name for limit in wanted]))
    missing = [limit for limit in wanted if limit.name not in known]
    try:
        yield from declaring(missing, actor=actor)
    except NotPermitted as refused:
        raise UnknownLimit(
            error.what,
            f"this program declares {missing[0].name}, and could not make it: {refused.what}",
            "start a worker of the app once, or call app.declare_limits() as a role that may",
        ) from refused
    return bool(missing)


def once_each(declared: Sequence[Limit]) -> tuple[Limit, ...]:
    """What a program declares, each name once.

    Raises:
        LimitConflict: it declares one limit in two ways. InvalidInput: something is no limit.
    """
    found: dict[str, Limit] = {}
    for limit in [declared] if isinstance(declared, Limit) else declared:
        _check(limit, None)
        known = found.setdefault(limit.name, limit)
        if known != limit:
            raise LimitConflict(
                f"the limit {limit.name} is declared twice: `{known}` and `{limit}`",
                "one of them would never count",
                "leave one of them out",
            )
    return tuple(found.values())


def _reading(name: str) -> Procedure[LimitRecord]:
    found = yield from ask(limits.read_limits([name]))
    if not found:
        raise _unknown(name)
    return found[0]


def _unknown(name: str) -> UnknownLimit:
    return UnknownLimit(
        f"there is no limit {name}",
        "it was never defined, or somebody removed it",
        "`fencerow limits list` shows those there are",
    )


def _check(limit: object, reason: str | None) -> None:
    if not isinstance(limit, Limit):
        raise InvalidInput(
            f"{type(limit).__name__} is no limit",
            "a Limit is expected",
            'pass Limit("queue:mail", at_once=10)',
        )
    if reason is not None:
        check_text(reason, "the reason", REASON_LENGTH_MAX)
