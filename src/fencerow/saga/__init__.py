"""Sagas: what a job has done is undone, in reverse, if the job ends without success.

    app.saga(order, undo=[refund, free_room])

    paid = await job.step("charge", charge, number, undo=refund)

The guide: docs/guide/steps.md.
"""

from typing import TYPE_CHECKING

from fencerow.core.lazy import lazily

if TYPE_CHECKING:
    from fencerow.saga.errors import InvalidSaga, UndoMissing, UndoNotPossible
else:
    __getattr__ = lazily(
        __name__,
        dict.fromkeys(("InvalidSaga", "UndoMissing", "UndoNotPossible"), "fencerow.saga.errors"),
    )

__all__ = ["InvalidSaga", "UndoMissing", "UndoNotPossible"]
