"""Child processes, as the core is told of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fencerow.core.wing import Wing
from fencerow.core.worker.brought import Processes

if TYPE_CHECKING:
    from fencerow.core.config import CoreConfig, Settings
    from fencerow.core.model.handler import Handler
    from fencerow.core.worker.brought import Apart
    from fencerow.core.worker.calling import Calls
    from fencerow.core.worker.deciding import Decider
    from fencerow.core.worker.executor import Executor


def _made(executor: Executor, calls: Calls, decider: Decider, config: CoreConfig) -> Apart:
    from fencerow.processes.running import ChildRuns

    return ChildRuns(executor, calls, decider, config)


def _declared(handler: Handler) -> None:
    from fencerow.processes.origin import check_place

    check_place(handler)


def _served(handler: Handler, config: CoreConfig) -> None:
    from fencerow.processes.origin import check_served

    check_served(handler, config)


def _settings() -> type[Settings]:
    from fencerow.processes.settings import ChildSettings

    return ChildSettings


WING = Wing("processes", processes=Processes(_made, _declared, _served), settings=_settings)
