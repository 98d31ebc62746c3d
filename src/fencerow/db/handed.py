"""A transaction of ours that is handed to a handler: entered once and in its way, and ended by nobody but us."""

from __future__ import annotations

from fencerow.db.engine import AsyncSession, Session
from fencerow.db.errors import FencerowError


class Handed:
    """Refuses what a handler must not do with it, by `misuse`.

    `name` is what the handler calls it; `end` is what it ends with, in one commit.
    """

    def __init__(self, name: str, end: str, misuse: type[FencerowError], *, is_async: bool) -> None:
        self._name = name
        self._end = end
        self._misuse = misuse
        self._is_async = is_async
        self._entered = False

    def enter(self, *, in_async: bool) -> None:
        """Its block begins, by `async with` or by `with`.

        Raises:
            FencerowError: it is the wrong way for this handler, or the second time. Nothing was opened.
        """
        if in_async != self._is_async:
            raise self._misuse(
                f"{self._name} was entered in the wrong way for this handler",
                "it is committed in the way and in the thread in which the handler runs",
                "write `async with` in an async def handler and `with` in a plain def one",
            )
        if self._entered:
            raise self._misuse(
                f"{self._name} was entered twice", "it is one commit", "do all writes in one block"
            )
        self._entered = True

    def check_open(self, session: Session | AsyncSession) -> None:
        """A handler that commits by itself would write its effects without the rest.

        Raises:
            FencerowError: the handler has ended it. What it committed by hand stays.
        """
        if not session.is_open:
            raise self._misuse(
                f"the handler ended {self._name} itself, by COMMIT or ROLLBACK",
                f"it ends with {self._end}, in one commit",
                "leave commit and rollback to Fencerow; what was committed by hand stays",
            )

    def ended_by_hand(self) -> FencerowError:
        """What a handler is told whose session would commit by itself, or go on beside the transaction."""
        return self._misuse(
            f"the handler ended {self._name} by its session, or would write beside it",
            f"it ends with {self._end}, in one commit; this session has no other transaction",
            "leave commit, rollback and close to Fencerow; a part that may fail belongs in begin_nested()",
        )
