"""Which jobs of an app are worked over HTTP, by their names: for those who hear of one by its name alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Protocol

from fencerow.core.app.app import JobsApp
from fencerow.web.worked.endpoint import WorkedEndpoint

WORKING: Final = "fencerow_working"  # the attribute of a handler that says so


class Working(Protocol):
    """What hands out the attempts of one job."""

    @property
    def endpoint(self) -> WorkedEndpoint:
        """Where they go."""
        ...

    def check(self, text: bytes) -> None:
        """Whether a result is of the declared type.

        Raises:
            ResultUnfit: it is not.
        """


def worked_by(app: JobsApp) -> Mapping[str, Working]:
    """What hands out the attempts of each such job that this app declares."""
    found = {name: getattr(handler.function, WORKING, None) for name, handler in app.handlers.items()}
    return {name: working for name, working in found.items() if working is not None}
