"""Which jobs of an app are worked over HTTP, by their names: for those who hear of one by its name alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from fencerow.core.app.app import JobsApp

if TYPE_CHECKING:
    from fencerow.web.worked.working import WorkedOverHttp

WORKING: Final = "fencerow_working"  # the attribute of a handler that says so


def worked_by(app: JobsApp) -> Mapping[str, WorkedOverHttp]:
    """What hands out the attempts of each such job that this app declares."""
    found = {name: getattr(handler.function, WORKING, None) for name, handler in app.handlers.items()}
    return {name: working for name, working in found.items() if working is not None}
