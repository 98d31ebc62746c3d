"""What a next release may bring: a column of both job tables with indexes, and a rule that no release before knows.

The rule is one that jobs of today need too, so that its keeping can be watched.
"""

from __future__ import annotations

from fencerow.core.model import rules
from fencerow.core.schema import rooms

RULE = "exclusive"


def bring() -> None:
    """Make this process one of that release; before it makes an engine or a worker."""
    rooms.add_packages([__name__])
    rules.KNOWN = (*rules.KNOWN, RULE)
