"""`client.schedules`: look at schedules, pause, resume and remove them, run them now; sync and async."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from datetime import datetime
from typing import Unpack

import fencerow.schedules.definitions as definitions
import fencerow.schedules.looking as looking
import fencerow.schedules.past as past
import fencerow.schedules.running as running
import fencerow.schedules.ticking as ticking
from fencerow.core.client.base import Verbs
from fencerow.core.client.moving import check_reason
from fencerow.core.errors import InvalidInput
from fencerow.core.model.job import NewJob, moment
from fencerow.core.model.wakeup import Rescheduled, encode
from fencerow.core.store.hints import hints_of
from fencerow.core.verb import averb, verb
from fencerow.db.run import Procedure, WakeUp, ask
from fencerow.schedules.definition import known
from fencerow.schedules.definitions import RowKind, RowOrigin, WantedRow, wanted_row
from fencerow.schedules.errors import InvalidSchedule, ScheduleTaken, UnknownSchedule
from fencerow.schedules.firing import fire_due
from fencerow.schedules.options import ScheduleOptions, check_entity, check_name, planned
from fencerow.schedules.past import BackfilledFire
from fencerow.schedules.running import RunNow
from fencerow.schedules.shown import UNREADABLE, ScheduleRecord, fires_us
from fencerow.schedules.ticking import Tick

LIMIT_MAX = 10_000
NAMES_MAX = 1000  # among which the closest is looked for


class ScheduleVerbs(Verbs):
    """Looks at schedules and changes what is stored of them. Each method has an async twin with an `a` in front.

    Where an `entity` can be given, None means the schedule with all its entities.
    """

    @verb
    def listed(
        self,
        *,
        name: str | None = None,
        entities: bool = False,
        after: tuple[str, str] = ("", ""),
        limit: int = 1000,
    ) -> Procedure[list[ScheduleRecord]]:
        """Schedules in the order of their names, or that of one name; with `entities` their rows as well.

        `after`: name and entity of the last one of the page before.

        Raises:
            InvalidInput: `limit` is not from 1 to 10,000.
        """
        _check_limit(limit)
        return (
            yield from ask(looking.read_schedules(name=name, entities=entities, after=after, limit=limit))
        )

    alisted = averb(listed)

    @verb
    def get(self, name: str, entity: str = "") -> Procedure[ScheduleRecord]:
        """A schedule as it stands, or one of its entities.

        Raises:
            UnknownSchedule: there is none.
        """
        return (yield from _getting(name, entity))

    aget = averb(get)

    @verb
    def ticks(self, name: str, entity: str | None = None, *, limit: int = 20) -> Procedure[list[Tick]]:
        """Its latest fires, the newest first: which job each made, or why none.

        Raises:
            InvalidInput: `limit` is not from 1 to 10,000.
        """
        _check_limit(limit)
        return (yield from ask(ticking.read_ticks(check_name(name), entity, limit)))

    aticks = averb(ticks)

    @verb
    def next_fires(self, name: str, entity: str = "", *, count: int = 5) -> Procedure[list[datetime]]:
        """When it fires next, as datetimes in UTC, whether or not it is paused; none for one with entities.

        Raises:
            UnknownSchedule: there is none. UnknownZone: this machine does not know its time zone.
            InvalidInput: `count` is not from 1 to 10,000.
        """
        _check_limit(count)
        found = yield from _getting(name, entity)
        now_us = yield from ask(looking.now_us())
        if found.next_us is None or found.next_us > now_us:
            return list(map(moment, fires_us(found, now_us, count)))
        # Overdue: the first is made at once.
        return list(map(moment, [found.next_us, *fires_us(found, now_us, count - 1)]))

    anext_fires = averb(next_fires)

    @verb
    def pause(self, name: str, entity: str | None = None, *, reason: str | None = None) -> Procedure[int]:
        """Let it fire no more until it is resumed; returns how many rows were paused now.

        Only people pause. The pause outlives deploys and changes, also one that takes the schedule or the entity away
        for a while; new entities are paused with their schedule. Once this has returned nothing fires; jobs that were
        made before go on. May be repeated: the first reason is kept.

        Raises:
            UnknownSchedule: there is none. InvalidInput: the reason cannot be used.
        """
        check_reason(reason)
        paused, there = yield from ask(
            definitions.pause(check_name(name), entity, actor=self._client.actor, reason=reason)
        )
        if not there:
            raise (yield from _unknown(name, entity))
        return paused

    apause = averb(pause)

    @verb
    def resume(self, name: str, entity: str | None = None, *, run_now: bool = False) -> Procedure[int]:
        """Let it fire again, at its next time; returns how many rows were resumed.

        An entity that was paused by itself is resumed by itself only. What would have fired meanwhile is not made up.
        With `run_now` it fires at once besides. May be repeated.

        Raises:
            UnknownSchedule: there is none.
        """
        resumed, there = yield from ask(definitions.resume(check_name(name), entity))
        if not there:
            raise (yield from _unknown(name, entity))
        if run_now and resumed:
            yield from _running(name, entity, self._client.actor, paused=False)
        yield changed()
        return resumed

    aresume = averb(resume)

    @verb
    def run(self, name: str, entity: str | None = None, *, force: bool = False) -> Procedure[list[RunNow]]:
        """Submit its job now, also while it is paused; its next fire stays where it is. Returns the job of each row.

        Where jobs may not overlap and an earlier one has not ended, none is made; `force` makes it all the same. With
        overlap "queue" it is made, and waits its turn.

        Raises:
            UnknownSchedule: there is none, or it has no entity yet. OlderWorkers, UnknownLimit: its job needs what a
                living worker does not know, or what nobody defined. None was made.
            OutcomeUnknown: the answer was lost; its ticks say whether it ran.
        """
        return (yield from _running(name, entity, self._client.actor, force))

    arun = averb(run)

    @verb
    def backfill(
        self,
        name: str,
        entity: str | None = None,
        *,
        start: datetime,
        end: datetime,
        at_most: int = 1000,
        dry_run: bool = False,
        force: bool = False,
    ) -> Procedure[list[BackfilledFire]]:
        """Make the jobs of the fires from `start` up to `end`, a time in the past; with `dry_run` only say which.

        A fire that has made a job makes no other, so it may be repeated. One that was left out, because it was missed,
        overlapped or fell into a maintenance window, is made. The jobs are due at once, and may overlap unless they
        queue. Which fires made a job is known for `retention_ticks_s`. Older ones are refused; `force` makes them all
        the same, a second time perhaps.

        Raises:
            InvalidInput: no stretch of the past, more than `at_most` fires, or some of which it is no longer known
                whether they made a job. Nothing was made. UnknownSchedule: there is none. OlderWorkers: a living worker
                does not know what its job needs; the same again makes what is missing.
        """
        past.check_at_most(at_most)
        start_us, end_us = past.stretch(start, end, (yield from ask(looking.now_us())))
        fires, is_there = yield from past.fires_of_all(
            check_name(name), entity, start_us, end_us, at_most, force=force
        )
        if not is_there:
            raise (yield from _unknown(name, entity))
        if dry_run:
            before = yield from ask(past.fires_with_job(name, entity, start_us, end_us))
            return [BackfilledFire(*fire, was_made=fire in before) for fire in fires]
        found, jobs = yield from past.backfilling(
            name, entity, fires, start_us, end_us, self._client.actor, force
        )
        if messages := hints_of(jobs):
            yield WakeUp(messages)
        return found

    abackfill = averb(backfill)

    @verb
    def tick(self) -> Procedure[Sequence[str]]:
        """Fire what is due now; returns the ids of the jobs. Workers do this by themselves: it is for tests, and for
        programs without a worker. May be repeated, and done anywhere at once: each fire makes one job.

        A schedule that cannot fire says why (`trouble`), and the others fire."""
        jobs: list[NewJob] = []
        left: set[ticking.Key] = set()
        while (ticked := (yield from fire_due(left))).rows:
            jobs += ticked.jobs
            left |= ticked.left
            if ticked.left:
                yield from ask(ticking.note_troubles({**ticked.troubles, **ticked.refused}))
        return [job.id for job in jobs]

    atick = averb(tick)

    @verb
    def change(
        self, name: str, entity: str = "", *, take_over: bool = False, **given: Unpack[ScheduleOptions]
    ) -> Procedure[ScheduleRecord]:
        """Change when a schedule fires, and by which rules; what it submits stays, and so does all that is not given.

        Raises:
            InvalidSchedule, UnknownZone, InvalidWindow: that cannot work. UnknownSchedule: there is none.
            ScheduleTaken: code declares it, and it was not to be taken over. Nothing was changed.
        """
        found = yield from _getting(name, entity)
        rules = found.rules
        if rules is None or found.kind is RowKind.HEAD:
            raise InvalidSchedule(
                f"schedule {name} cannot be changed by itself",
                UNREADABLE if rules is None else "it stands for its entities, which code declares",
                "change it in code, or one entity (--entity)",
            )
        changed_rules = planned(given, rules).definition(rules.work)
        wanted = wanted_row(name, entity, found.kind, changed_rules)
        return (yield from putting(wanted, self._client.actor, take_over))

    achange = averb(change)

    @verb
    def remove(self, name: str, entity: str | None = None) -> Procedure[int]:
        """Remove a schedule that people made, with its entities; returns how many rows went. Its jobs stay.

        Raises:
            UnknownSchedule: there is none.
            ScheduleTaken: code declares it, and would make it again. Pause it, or take it out of the code.
        """
        removed, is_there, is_declared = yield from ask(definitions.remove(check_name(name), entity))
        if not is_there:
            raise (yield from _unknown(name, entity))
        if is_declared:
            raise ScheduleTaken(
                f"schedule {name} is declared in code",
                "the next worker that starts would make it again",
                f"pause it (`fencerow schedules pause {name}`), or take it out of the code",
            )
        yield changed()
        return removed

    aremove = averb(remove)


def _getting(name: str, entity: str) -> Procedure[ScheduleRecord]:
    found = yield from ask(looking.read_schedules(name=check_name(name), entity=entity))
    if not found:
        raise (yield from _unknown(name, entity))
    return found[0]


def _running(
    name: str, entity: str | None, actor: str | None, force: bool = False, *, paused: bool = True
) -> Procedure[list[RunNow]]:
    runs, jobs = yield from ask(
        running.run_now(check_name(name), entity, actor=actor, force=force, paused=paused)
    )
    if not runs and paused:
        raise (yield from _unknown(name, entity))
    if messages := hints_of(jobs):
        yield WakeUp(messages)
    return runs


def putting(wanted: WantedRow, actor: str | None, take_over: bool) -> Procedure[ScheduleRecord]:
    """Store a person's schedule, unless code declares it."""
    known(wanted.text)  # what cannot be read back is not stored
    _, before = yield from ask(definitions.put_one(wanted, actor=actor, take_over=take_over))
    if before is not None and before.origin is RowOrigin.CODE and not take_over:
        raise ScheduleTaken(
            f"schedule {wanted.name} is declared in code",
            "the next worker that starts would undo the change",
            "change it there, pause it, or take it over (--take-over, take_over=True)",
        )
    yield changed()
    (found,) = yield from ask(looking.read_schedules(name=wanted.name, entity=wanted.entity))
    return found


def changed() -> WakeUp:
    """Wake the workers: something may be due earlier than they think."""
    return WakeUp([encode(Rescheduled())])


def _unknown(name: str, entity: str | None) -> Procedure[UnknownSchedule]:
    """The error for a schedule that is not there."""
    if entity:
        check_entity(entity)
        rows = yield from ask(looking.read_schedules(name=name, entities=True, limit=NAMES_MAX))
        names = [each.entity for each in rows if each.kind is not RowKind.HEAD and each.entity]
        what, close = (
            f"schedule {name} has no entity {entity!r}",
            difflib.get_close_matches(entity, names, n=3),
        )
    else:
        names = yield from ask(looking.schedule_names())
        what, close = f"there is no schedule {name!r} here", difflib.get_close_matches(name, names, n=3)
        if name in names:
            what = f"schedule {name!r} has no entity yet, or only entities by their names"
    known_here = f"{len(names)} or more" if len(names) >= NAMES_MAX else f"{len(names)}"
    why = f"did you mean {' or '.join(close)}?" if close else f"{known_here} are known"
    return UnknownSchedule(what, why, "`fencerow schedules list` shows those that there are")


def _check_limit(limit: int) -> None:
    if not 1 <= limit <= LIMIT_MAX:
        raise InvalidInput(f"{limit} were asked for", f"1 to {LIMIT_MAX} are listed", "correct the number")
