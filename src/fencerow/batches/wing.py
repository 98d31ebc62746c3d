"""Batches, as the core is told of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fencerow.core.wing import Wing

if TYPE_CHECKING:
    from fencerow.core.worker.calling import Calls
    from fencerow.core.worker.deciding import Decider
    from fencerow.core.worker.executor import Executor, RunsTogether


def _together(executor: Executor, calls: Calls, decider: Decider) -> RunsTogether:
    from fencerow.batches.batches import Batches

    return Batches(executor, calls, decider)


WING = Wing("batches", together=_together)
