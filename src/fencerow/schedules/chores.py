"""What every worker does for schedules, with no leader: it makes ticks, and looks after what its program declares."""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import fencerow.calendar.zones as zones
import fencerow.schedules.following as following
import fencerow.schedules.ticking as ticking
from fencerow.core.chore import Chore
from fencerow.core.client.base import ClientBase
from fencerow.core.errors import FencerowError
from fencerow.core.model.wakeup import Rescheduled, WakeUp
from fencerow.core.telemetry import Telemetry
from fencerow.db.engine import Engine
from fencerow.db.text import clean
from fencerow.schedules.appside import Program, reconciling, refreshing
from fencerow.schedules.declared import DeclaredSchedule
from fencerow.schedules.definition import seed_of
from fencerow.schedules.firing import fire_due
from fencerow.schedules.following import Refreshed
from fencerow.schedules.listing import Listing
from fencerow.schedules.programs import DeclaredRelease, contradict, read_programs
from fencerow.schedules.reconciling import Reconciled
from fencerow.schedules.settings import COMPARE_S, ScheduleSettings
from fencerow.schedules.ticking import Key

log = logging.getLogger("fencerow.schedules")

STAGGER_S = 0.02  # workers that wait for the same instant do not all ask at once
FORGET_S = 60.0  # what could not be computed is tried again
AGAIN_S = 5.0  # and what was refused, as long as a look at the workers is good for a submit
SOON_S = 30.0
LISTED_S = 60.0  # for a user's function to list its entities
TROUBLE_MAX = 500
TOLD_MAX = 10


@dataclass(frozen=True)
class ScheduleSite:
    """Where the chores work."""

    client: Callable[[], ClientBase]
    settings: ScheduleSettings
    telemetry: Telemetry
    program: Callable[[], Program]

    @property
    def engine(self) -> Engine:
        """The database, opened when it is first needed."""
        return self.client().engine


class TickChore(Chore):
    """Fires what is due, and sleeps until the next is, or until somebody changes a schedule."""

    name = "schedules"
    hears = (Rescheduled,)
    jitter = 0.0

    def __init__(self, site: ScheduleSite) -> None:
        self._site = site
        self._besides: dict[
            Key, float
        ] = {}  # what this worker cannot compute, and until when it is left to others
        self._told: dict[str, float] = {}  # what was logged of them, and until when it is not said again
        self._looked = False

    @property
    def is_idle(self) -> bool:
        """Whether nothing was due when it looked last."""
        return self._looked

    def for_worker(self) -> Chore:
        return TickChore(self._site)

    def is_for(self, message: WakeUp | None) -> bool:
        if isinstance(message, Rescheduled):
            self._besides.clear()
        return message is None or isinstance(message, Rescheduled)

    async def tick(self) -> float:
        """Look when the next one is due, which writes nothing; then one transaction after the other until none is."""
        engine, now_s = self._site.engine, time.monotonic()
        self._besides = {key: until for key, until in self._besides.items() if until > now_s}
        next_us, now_us = await engine.arun(ticking.next_fire(besides=list(self._besides)))
        if next_us is not None:
            _tell_of_zones()
        fired = next_us is not None and next_us <= now_us and await self._fire()
        self._looked = not fired
        return 0.0 if fired else self._pause_s(next_us, now_us)

    async def _fire(self) -> bool:
        """Whether anything was left to this worker: what others have locked is theirs."""
        ticked = await self._site.client().arun(fire_due(list(self._besides)))
        if ticked.jobs:
            self._site.telemetry.counters.add("schedule_jobs", len(ticked.jobs))
        await self._leave(ticked.troubles, FORGET_S, "cannot fire in this worker")
        await self._leave(ticked.refused, AGAIN_S, "does not fire for now")
        return ticked.rows > 0

    def _pause_s(self, next_us: int | None, now_us: int) -> float:
        poll_s = self._site.settings.schedules_poll_s
        if next_us is None:
            return poll_s
        return min(poll_s, max(0.0, (next_us - now_us) / 1e6) + random.uniform(0.001, STAGGER_S))  # noqa: S311

    async def _leave(self, troubles: Mapping[Key, str], for_s: float, what: str) -> None:
        """Others may know the zone, or the newer form, and what is missing may come; the row says what is wrong."""
        if not troubles:
            return
        now_s = time.monotonic()
        self._besides |= dict.fromkeys(troubles, now_s + for_s)
        self._told = {text: until for text, until in self._told.items() if until > now_s}
        for text in sorted(set(troubles.values()) - self._told.keys()):
            names = [seed_of(*key) for key, said in troubles.items() if said == text]
            more = f" and {len(names) - 1} more" if len(names) > 1 else ""
            log.error("schedule %s%s %s: %s", names[0], more, what, text)
            self._told[text] = now_s + FORGET_S
        await self._site.engine.arun(ticking.note_troubles(troubles))


class DeclaredChore(Chore):
    """Reconciles what the program declares, once; then asks for its entities again and again."""

    name = "declared schedules"

    def __init__(self, site: ScheduleSite) -> None:
        self._site = site
        self._release: DeclaredRelease | None = None  # what was declared, once it was
        self._told = ""  # of another release
        self._refreshing: dict[str, asyncio.Task[None]] = {}  # one for each list: none waits for another

    def for_worker(self) -> Chore:
        return DeclaredChore(self._site)

    @property
    def is_idle(self) -> bool:
        """Whether everything is as it was declared."""
        return self._release is not None

    async def tick(self) -> float:
        program = self._site.program()
        if self._release is None:
            client, release = self._site.client(), program.release
            _tell(await client.arun(reconciling(program, client.actor)), release)
            self._release = release
        else:
            await self._compare(self._release)
        listed = [each for each in program.declarations.all.values() if each.entities is not None]
        if not listed:
            return COMPARE_S
        pause_s = self._site.settings.entities_refresh_s / 4
        await self._refresh_all(listed, program, pause_s)
        return pause_s

    async def end(self, within_s: float) -> None:
        for task in self._refreshing.values():
            task.cancel()
        if self._refreshing:
            await asyncio.wait(self._refreshing.values(), timeout=within_s)

    async def _compare(self, release: DeclaredRelease) -> None:
        """Say so, here and to the doctor, if the release that counts declares otherwise than this process.

        A newer one is what a deploy does. Of two with the same version nobody knows which is right.
        """
        client = self._site.client()
        found = await client.engine.arun(read_programs(release.owner))
        told = next((each.in_words() for each in found if each.differs(release)), "")
        if told:
            text = (
                f"this process declares schedules otherwise than what was declared last, {told}; that counts. "
                "Give releases an order: raise schedules_version with each change"
            )
            is_odd = await client.engine.arun(contradict(release, actor=client.actor, trouble=text))
            if is_odd and told != self._told:
                log.warning("%s", text)
        self._told = told

    async def _refresh_all(self, listed: list[DeclaredSchedule], program: Program, within_s: float) -> None:
        """What takes longer goes on beside the next calls. An error is the chore's own."""
        for each in listed:
            if each.name not in self._refreshing:
                self._refreshing[each.name] = asyncio.create_task(self._refresh(each, program))
        done, _ = await asyncio.wait(self._refreshing.values(), timeout=within_s)
        for name in [name for name, task in self._refreshing.items() if task in done]:
            task = self._refreshing.pop(name)
            if not task.cancelled():  # the end of this worker has cancelled it
                task.result()

    async def _refresh(self, declared: DeclaredSchedule, program: Program) -> None:
        """One worker of all asks the user's function; whatever comes of it, the other schedules go on.

        A thread that hangs cannot be ended. It is waited for, because another turn would cost another thread; what it
        lists then is too old to be used.
        """
        every_s = self._site.settings.entities_refresh_s
        refresh = following.claim_refresh(declared.name, declared.digest, every_s=every_s)
        if not await self._site.engine.arun(refresh):
            return
        call = asyncio.ensure_future(declared.listed())
        try:
            done, _ = await asyncio.wait([call], timeout=LISTED_S)
            if done:
                await self._keep(declared, call, program)
                return
            await self._note(declared, declared.late(LISTED_S))
            if not declared.is_coroutine:
                await asyncio.gather(call, return_exceptions=True)
        finally:
            call.cancel()

    async def _keep(self, declared: DeclaredSchedule, call: asyncio.Task[Listing], program: Program) -> None:
        """Keep the rows of its entities in step with what was listed."""
        try:
            client, listing = self._site.client(), await call
            done = await client.arun(refreshing(declared, listing, program, client.actor))
            await asyncio.to_thread(listing.let_go)
        except FencerowError as error:
            await self._note(declared, error)
        else:
            _tell_entities(declared.name, done)

    async def _note(self, declared: DeclaredSchedule, error: FencerowError) -> None:
        """Say on the row why its entities stay as they are, and have the list looked at again soon."""
        text = clean(error.line)[:TROUBLE_MAX]
        log.error("the entities of schedule %s stay as they are: %s", declared.name, text)
        soon_s = min(SOON_S, self._site.settings.entities_refresh_s)
        sooner = following.refresh_sooner(declared.name, declared.digest, trouble=text, soon_s=soon_s)
        await self._site.engine.arun(sooner)


@cache
def _tell_of_zones() -> None:
    """Once in a process, and not before there is a schedule: it looks at several hundred files."""
    if zones.database_missing():
        log.error(
            "this machine has no time zones: schedules in a zone are left to other workers; %s",
            zones.NO_DATABASE,
        )


def _tell(done: Reconciled, release: DeclaredRelease) -> None:
    if done.newer is not None:
        log.warning(
            "this process declares version %d of the schedules, and version %d counts: nothing was changed. To go back "
            "to this one, `fencerow schedules reconcile --take-back`",
            release.version,
            done.newer,
        )
    for what, names in (("made", done.made), ("changed", done.changed)):
        if names:
            log.info("schedules %s as code declares them: %s", what, ", ".join(names))
    if done.removed:
        log.warning("schedules removed, this program declares them no longer: %s", ", ".join(done.removed))
    if done.paused:
        log.warning("no longer declared here: %s; what a person paused stays paused", _some(done.paused))
    for name in done.kept:
        log.warning("schedule %s is declared in code, but a person made it so: it stays as it is", name)
    for name in done.elsewhere:
        log.warning(
            "schedule %s is no longer declared here, but a living worker runs its job: it stays for now. If two "
            "programs share these tables, give each a name of its own (FENCEROW_SCHEDULES_OWNER)",
            name,
        )


def _tell_entities(name: str, done: Refreshed) -> None:
    if done.made or done.removed:
        log.info("schedule %s: new entities: %d, gone: %d", name, len(done.made), len(done.removed))
    if done.paused:
        log.warning(
            "schedule %s lists %s no longer; what a person paused stays paused", name, _some(done.paused)
        )
    if done.trouble is not None:
        log.error("schedule %s: %s", name, done.trouble)


def _some(names: Sequence[str]) -> str:
    """The first of them; there may be a hundred thousand."""
    more = f" and {len(names) - TOLD_MAX} more" if len(names) > TOLD_MAX else ""
    return ", ".join(names[:TOLD_MAX]) + more
