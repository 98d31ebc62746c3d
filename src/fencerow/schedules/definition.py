"""What a schedule is: when it fires, by which rules, and what it submits. As it is stored, and as it is computed with.

The job is stored as it would be submitted, with its options: any worker can make a tick, also one that has never
heard of the job.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Any

import msgspec

from fencerow.core.model.ids import new_id
from fencerow.core.model.job import NewJob, Template, moment
from fencerow.core.model.labels import encode_headers
from fencerow.core.model.rules import needed, needed_of
from fencerow.schedules.holding import windows_header
from fencerow.schedules.misfire import NO_WINDOWS, Catching, Misfire
from fencerow.schedules.spec import Spec
from fencerow.schedules.windows import MaintenanceWindows
from fencerow.turns.options import OWN_KEYS

LATE_S = 60.0
CATCHUP_MAX = 10
NAME_HEADER, ENTITY_HEADER, FIRE_HEADER = (
    "fencerow-schedule",
    "fencerow-schedule-entity",
    "fencerow-fire-at",
)


class Overlap(StrEnum):
    """What becomes of a fire while an earlier job of the same schedule has not ended."""

    SKIP = "skip"
    ALLOW = "allow"
    QUEUE = "queue"  # its job waits until those before it have ended, retries and all


class InWindow(StrEnum):
    """What becomes of a fire in a maintenance window."""

    SKIP = "skip"
    DEFER = "defer"


class Definition(msgspec.Struct, frozen=True, kw_only=True):
    """All that decides about the fires of a schedule. `work` has no id, and nobody submitted it yet."""

    spec: dict[str, Any]
    work: NewJob
    misfire: Misfire = Misfire.ONE
    late_s: float = LATE_S
    catchup_max: int = CATCHUP_MAX
    overlap: Overlap = Overlap.SKIP
    windows: list[str] = []
    windows_tz: str = "UTC"
    in_window: InWindow = InWindow.SKIP

    @property
    def job(self) -> str:
        """The name of the job."""
        return self.work.template.name

    def text(self) -> str:
        """As it is stored, always in the same way."""
        return msgspec.json.encode(self, order="deterministic").decode()


@dataclass(frozen=True, slots=True)
class Computable:
    """A definition that this worker can compute with."""

    definition: Definition
    spec: Spec
    catching: Catching
    windows: MaintenanceWindows

    @property
    def rules(self) -> frozenset[str]:
        """Those that its jobs need, and that workers of older releases may not know."""
        own = needed([self.definition.work])
        return own | needed_of(exclusive=True) if self.definition.overlap is Overlap.QUEUE else own

    @property
    def skipped(self) -> MaintenanceWindows:
        """The windows in which a fire makes no job."""
        return self.windows if self.definition.in_window is InWindow.SKIP else NO_WINDOWS

    def job_of(
        self, name: str, entity: str, fire_us: int, run_at_us: int | None = None, *, defers: bool = False
    ) -> NewJob:
        """The job of one fire, under a new id, due at once or later. Its headers say which schedule made it, and when
        that was due; with `defers` also the windows in which no worker may start it, however long it waited."""
        work, seed = self.definition.work, seed_of(name, entity)
        template = msgspec.structs.replace(
            work.template,
            submitted_by=f"schedule {seed}"[:200],
            headers=_with_headers(work.template, name, entity, fire_us, self._carried() if defers else {}),
            run_at_us=run_at_us,
        )
        if self.definition.overlap is not Overlap.QUEUE:
            return msgspec.structs.replace(work, id=new_id(), template=template)
        strict = msgspec.structs.replace(template, strict=True)  # nobody goes past a retry
        return msgspec.structs.replace(work, id=new_id(), template=strict, exclusive=turn_of(name, entity))

    def _carried(self) -> dict[str, str]:
        return windows_header(self.windows) if self.definition.in_window is InWindow.DEFER else {}


@lru_cache(maxsize=4096)
def known(text: str) -> Computable:
    """Read a stored definition.

    Raises:
        InvalidSchedule, UnknownZone: this worker cannot compute it. msgspec.DecodeError: a newer Fencerow wrote it.
    """
    definition = msgspec.json.decode(text, type=Definition)
    catching = Catching(definition.misfire, definition.catchup_max, round(definition.late_s * 1e6))
    windows = MaintenanceWindows.parse(definition.windows, definition.windows_tz)
    return Computable(definition, Spec.parse(definition.spec), catching, windows)


def digest_of(text: str) -> str:
    """By which two definitions are compared."""
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def seed_of(name: str, entity: str) -> str:
    """What fixes phase and jitter of one row. A name has no slash, so no two rows share one."""
    return f"{name}/{entity}" if entity else name


def turn_of(name: str, entity: str) -> str:
    """The exclusive key of one row whose jobs queue."""
    return f"{OWN_KEYS}schedule:{seed_of(name, entity)}"


def _with_headers(
    template: Template, name: str, entity: str, fire_us: int, more: dict[str, str]
) -> str | None:
    own = {} if template.headers is None else msgspec.json.decode(template.headers, type=dict[str, str])
    entities = {ENTITY_HEADER: entity} if entity else {}
    fire = {FIRE_HEADER: moment(fire_us).isoformat()}
    return encode_headers({**own, NAME_HEADER: name, **entities, **fire, **more})
