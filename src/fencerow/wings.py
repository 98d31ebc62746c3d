"""The list of wings: those below first. A new feature is a folder, and one line here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fencerow.audit.wing import WING as AUDIT
from fencerow.batches.wing import WING as BATCHES
from fencerow.clocks.wing import WING as CLOCKS
from fencerow.core.wing import build
from fencerow.doctor.wing import WING as DOCTOR
from fencerow.events.wing import WING as EVENTS
from fencerow.flows.wing import WING as FLOWS
from fencerow.guards.wing import WING as GUARDS
from fencerow.handovers.wing import WING as HANDOVERS
from fencerow.limits.wing import WING as LIMITS
from fencerow.metrics.wing import WING as METRICS
from fencerow.migrations.wing import WING as MIGRATIONS
from fencerow.moving.wing import WING as MOVING
from fencerow.operators.wing import WING as OPERATORS
from fencerow.output.wing import WING as OUTPUT
from fencerow.payloads.wing import WING as PAYLOADS
from fencerow.planning.wing import WING as PLANNING
from fencerow.processes.wing import WING as PROCESSES
from fencerow.relay.wing import WING as RELAY
from fencerow.retention.wing import WING as RETENTION
from fencerow.saga.wing import WING as SAGA
from fencerow.schedules.wing import WING as SCHEDULES
from fencerow.steps.wing import WING as STEPS
from fencerow.turns.wing import WING as TURNS
from fencerow.unique.wing import WING as UNIQUE
from fencerow.web.wing import WING as WEB

if TYPE_CHECKING:
    from fencerow.config import Config
    from fencerow.core.model.habits import OthersWords
    from fencerow.job import Job

WINGS = (
    PROCESSES,
    BATCHES,
    PAYLOADS,
    TURNS,
    OPERATORS,
    CLOCKS,
    UNIQUE,
    HANDOVERS,
    FLOWS,
    LIMITS,
    STEPS,
    OUTPUT,
    SAGA,
    DOCTOR,
    RETENTION,
    EVENTS,
    GUARDS,
    MIGRATIONS,
    SCHEDULES,
    PLANNING,
    RELAY,
    METRICS,
    WEB,
    AUDIT,
    MOVING,
)


def _config() -> type[Config]:
    from fencerow.config import Config

    return Config


def _job() -> type[Job]:
    from fencerow.job import Job

    return Job


def _words() -> OthersWords:
    from fencerow.theirs import WORDS

    return WORDS


build(WINGS, _config, _job, _words)  # whoever imports anything of the package has imported this before
