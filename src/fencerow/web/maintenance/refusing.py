"""What is not done while the gateways are under maintenance."""

from __future__ import annotations

from fencerow.doctor.errors import CanaryRefused
from fencerow.web.maintenance.operations import Maintenance


def refuse_canary(found: Maintenance | None) -> None:
    """Raises:
    CanaryRefused: the maintenance that is on; what is measured beside it says nothing, and it may disturb.
    """
    if found is not None:
        raise CanaryRefused(
            f"the gateways are under maintenance{f': {found.reason}' if found.reason else ''}",
            "what is measured beside that says nothing of other days, and may disturb it",
            "send it when `fencerow maintenance off` has ended that",
        )
