"""What can be said of a schedule, checked: from keyword options, the command line or code to a definition."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Literal, TypedDict

import msgspec

from fencerow.calendar.errors import InvalidWindow
from fencerow.core.app.calls import Call
from fencerow.core.app.submitter import Submittable, Submitter
from fencerow.core.errors import ConfigError, InvalidInput
from fencerow.core.model.defaults import DAY_S
from fencerow.core.model.job import NewJob
from fencerow.core.model.misfit import refuse_unknown
from fencerow.core.model.seconds import Seconds, in_seconds
from fencerow.db.numbers import check_number
from fencerow.db.text import check_text
from fencerow.schedules.cron import Cron
from fencerow.schedules.definition import CATCHUP_MAX, LATE_S, Definition, InWindow, Overlap
from fencerow.schedules.errors import InvalidSchedule
from fencerow.schedules.misfire import Misfire
from fencerow.schedules.spec import Spec
from fencerow.schedules.spec_text import KINDS
from fencerow.schedules.windows import MaintenanceWindows

NAME_LENGTH_MAX = 100
ENTITY_LENGTH_MAX = 200
CATCHUP_MOST = 1000
LATE_LEAST_S = 1.0  # a fire is made some moments after its time; with less, none would be in time
LATE_MOST_S = 366 * DAY_S


class When(TypedDict, total=False):
    """When a schedule fires: `cron` (in `tz`, by default UTC), or so often (`rate` per minute, hour or day), or every
    `interval_s`."""

    cron: str | None
    tz: str | None
    rate: float | str | None  # more than 0; "1/24" is once in 24
    per: Literal["minute", "hour", "day"] | None
    interval_s: Seconds | None  # 1 or more
    spread: bool | None  # entities fire apart from one another; true by default
    phase_s: Seconds | None  # shifts all fires
    jitter_s: Seconds | None  # delays each fire by 0 to this, always in the same way


class Rules(TypedDict, total=False):
    """What becomes of fires that were missed, and of those that overlap."""

    misfire: Literal["skip", "one", "all"]
    late_s: Seconds  # with "skip": how late a fire may be and is made all the same
    catchup_max: int  # of one row in one pass
    overlap: Literal["skip", "allow", "queue"]
    windows: Sequence[
        str
    ]  # maintenance windows, such as "22:00-02:00" or "sat,sun 00:00-24:00 Europe/Berlin"
    windows_tz: str  # of those that name no zone; by default UTC
    in_window: Literal["skip", "defer"]  # a deferred job is due when the window ends


class ScheduleOptions(When, Rules, total=False):
    """All options of a schedule."""


WHEN = frozenset(When.__annotations__)
RULES = frozenset(Rules.__annotations__)


@dataclass(frozen=True, slots=True)
class SchedulePlan:
    """What was said of a schedule apart from its job."""

    spec: Spec
    misfire: Misfire
    late_s: float
    catchup_max: int
    overlap: Overlap
    windows: list[str]
    windows_tz: str
    in_window: InWindow

    def definition(self, work: NewJob) -> Definition:
        """With what it submits.

        Raises:
            InvalidSchedule: its jobs are to queue, and have an exclusive key of their own.
            InvalidWindow: each of its fires falls into a maintenance window, so that it would never make a job.
        """
        if self.windows and self.in_window is InWindow.SKIP:
            _refuse_never(self.spec, tuple(self.windows), self.windows_tz)
        if self.overlap is Overlap.QUEUE and work.exclusive is not None:
            raise InvalidSchedule(
                f"overlap is 'queue', and job {work.template.name} has the exclusive key {work.exclusive[:60]!r}",
                "with 'queue' the jobs wait for one another by a key of the schedule, and a job has one key",
                "choose overlap='allow': the jobs wait their turn by the key that they have",
            )
        return Definition(
            spec=self.spec.document(),
            work=work,
            misfire=self.misfire,
            late_s=self.late_s,
            catchup_max=self.catchup_max,
            overlap=self.overlap,
            windows=self.windows,
            windows_tz=self.windows_tz,
            in_window=self.in_window,
        )

    def at(self, when: Mapping[str, Any] | None) -> SchedulePlan:
        """The same rules at other times."""
        return self if not when else replace(self, spec=Spec.parse(when))


@lru_cache(maxsize=1024)
def _refuse_never(spec: Spec, windows: tuple[str, ...], zone: str) -> None:
    """Of a schedule at times of the wall; evenly spaced fires differ from entity to entity."""
    read = MaintenanceWindows.parse(windows, zone)
    if isinstance(spec.times, Cron) and read.swallow(lambda after_us: spec.times.next_after(after_us, "")):
        raise InvalidWindow(
            f"{spec.in_words()}: each fire falls into a maintenance window ({', '.join(windows)})",
            "a fire in a window makes no job, so it would never make one",
            'choose another time or window, or in_window="defer" (--in-window defer): the job waits for its end',
        )


def planned(given: Mapping[str, Any], before: Definition | None = None) -> SchedulePlan:
    """Check options. What they leave out is as `before`, or as it is by default.

    Raises:
        WrongCall: one is unknown. InvalidSchedule, UnknownZone, InvalidWindow: they cannot work.
    """
    refuse_unknown(given, WHEN | RULES, "the schedule")
    when = {name: value for name, value in given.items() if name in WHEN and value is not None}
    spec = Spec.parse(when if before is None else _over(when, before.spec))
    misfire = _choice(Misfire, "misfire", given.get("misfire"), before.misfire if before else Misfire.ONE)
    kept = before.overlap if before is not None else None
    usual = Overlap.ALLOW if misfire is Misfire.ALL else Overlap.SKIP
    overlap = _choice(Overlap, "overlap", given.get("overlap"), kept or usual)
    if misfire is Misfire.ALL and overlap is Overlap.SKIP:
        raise InvalidSchedule(
            "misfire is 'all' and overlap is 'skip'",
            "of the fires that are made up together, all but the first would be skipped",
            "choose misfire='one', or overlap='allow'",
        )
    late_s = _number(
        "late_s", given.get("late_s"), before.late_s if before else LATE_S, LATE_LEAST_S, LATE_MOST_S
    )
    most = before.catchup_max if before else CATCHUP_MAX
    catchup_max = _number("catchup_max", given.get("catchup_max"), most, 1, CATCHUP_MOST)
    zone = given.get("windows_tz") or (before.windows_tz if before else "UTC")
    windows = given.get("windows")
    read = MaintenanceWindows.parse((before.windows if before else []) if windows is None else windows, zone)
    usual_in = before.in_window if before else InWindow.SKIP
    in_window = _choice(InWindow, "in_window", given.get("in_window"), usual_in)
    return SchedulePlan(
        spec, misfire, float(late_s), int(catchup_max), overlap, read.document(), zone, in_window
    )


def _over(when: Mapping[str, Any], before: Mapping[str, Any]) -> dict[str, Any]:
    """What is said now, and what fits to it of what stood there: a new expression keeps its zone, a rate its phase."""
    kind = next((name for name in KINDS if name in when), None) or next(
        name for name in KINDS if name in before
    )
    return {**{name: value for name, value in before.items() if name in KINDS[kind]}, **when}


def work_of(submitter: Submitter, work: Submittable[Any, Any] | Call[Any], *arguments: Any) -> NewJob:
    """The job that a schedule submits, without an id: a call, or a job that is called with these arguments.

    Raises:
        InvalidSchedule: what was given is no job and no call, or has options that fit a single submit only.
        InvalidArguments: the arguments do not fit the job's parameters.
    """
    if not isinstance(work, Call | Submittable):
        raise InvalidSchedule(
            f"a value of type {type(work).__name__} was given to be scheduled",
            "a declared job is expected, or a call of one: job.call(...)",
            "pass the job itself, or job.call(...)",
        )
    call = work if isinstance(work, Call) else work.call(*arguments)
    options = call.recipe.options
    unfit = {
        "id": options.id,
        "key": options.key,
        "run_at": options.run_at_us,
        "connection": options.connection,
    }
    for name, value in unfit.items():
        if value is not None:
            raise InvalidSchedule(
                f"the job of a schedule was given {name}=",
                "a schedule submits a new job for each fire, and each would have the same",
                f"leave {name} out",
            )
    if call.recipe.agrees_on("unique"):
        raise InvalidSchedule(
            "the job of a schedule is unique",
            "whether a fire makes a job is said by the schedule's own overlap, and its tick tells what became of it",
            "schedule job.using(unique=False), with overlap='skip' to leave out fires while a job is there",
        )
    job = submitter.as_stored(call)
    template = msgspec.structs.replace(job.template, submitted_by=None)
    return msgspec.structs.replace(job, id="", template=template)


def check_name(name: object) -> str:
    """The name of a schedule.

    Raises:
        InvalidInput: it cannot be used.
    """
    text = check_text(name, "the name of a schedule", NAME_LENGTH_MAX)
    if "/" in text:
        raise InvalidInput(
            f"the schedule's name {text!r} contains a slash",
            "it parts a name from an entity, which is given by itself",
            "for an entity write entity=... (--entity); else use another character",
        )
    return text


def check_entity(entity: object) -> str:
    """The name of an entity.

    Raises:
        InvalidInput: it cannot be used.
    """
    return check_text(entity, "the name of an entity", ENTITY_LENGTH_MAX)


def _choice(kind: Any, name: str, given: object, usual: Any) -> Any:
    if given is None:
        return usual
    try:
        return kind(given)
    except ValueError:
        choices = ", ".join(kind)
        raise InvalidSchedule(
            f"{name} is {given!r}", f"expected one of {choices}", f"correct {name}="
        ) from None


def _number(name: str, given: object, usual: float, low: float, high: float) -> float:
    value = in_seconds(given)
    if value is None:
        return usual
    try:
        check_number(name, value, low, high)
    except ConfigError as error:
        raise InvalidSchedule(error.what, error.why, error.fix) from None
    assert isinstance(value, int | float)
    return value
