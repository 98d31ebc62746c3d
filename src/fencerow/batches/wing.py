"""Batches, as the core is told of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fencerow.core.wing import Wing

if TYPE_CHECKING:
    from fencerow.core.worker.brought import Together
    from fencerow.core.worker.executor import Executor


def _together(executor: Executor) -> Together:
    from fencerow.batches.batches import Batches

    return Batches(executor)


WING = Wing("batches", together=_together)
