"""What can be wrong with hours, and with the zone in which they are said (821, 822)."""

from __future__ import annotations

from fencerow.db.errors.input import InvalidInput


class UnknownZone(InvalidInput):
    """This machine knows no time zone of that name. The closest names are in `why`, or that it has no zones at all."""

    code = "FR-821"


class InvalidWindow(InvalidInput):
    """A maintenance window, or the hours of a limit, cannot be understood, never open, or end before they start.
    Nothing was stored."""

    code = "FR-822"
