"""What an app is given for limits that it declares in code."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from fencerow.core.answering import answer
from fencerow.core.app.app import JobsApp
from fencerow.db.run import Operation, run

if TYPE_CHECKING:
    from fencerow.limits.definition import Limit


@answer
class LimitedApp(JobsApp):
    """An app that makes its limits when it makes a worker. Who declares none loads nothing more of the wing."""

    _limits: Sequence[Limit] = ()

    @property
    def limits(self) -> Sequence[Limit]:
        """The limits that this program declares."""
        return self._limits

    def declare_limits(self) -> list[str]:
        """Make the limits that this program declares, and bring those of a lower version up to it.

        Returns the names of those that this changed. What people have set since stays. May be repeated; a worker
        does it when it is made.

        Raises:
            LimitConflict: another program declares something else under the same version. A worker is then not made.
        """
        if not self._limits:
            return []
        from fencerow.limits.client import declaring

        self.check_or_create()
        return run(declaring(self._limits, actor=self.actor), self._ask)

    def _ask(self, request: object) -> Any:
        assert isinstance(request, Operation)
        return self.engine.run(request)

    def _prepare(self) -> None:
        self.declare_limits()

    def _limit_by(self, declared: Sequence[Limit]) -> None:
        """These are declared.

        Raises:
            LimitConflict: one of them in two ways. InvalidInput: something is no limit.
        """
        if declared:
            from fencerow.limits.client import once_each

            self._limits = once_each(declared)
