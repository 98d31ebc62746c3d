"""Time zones by their names, the same on every host. No I/O, but for the data about time zones."""

from __future__ import annotations

import zoneinfo
from datetime import UTC, tzinfo
from functools import cache
from typing import Final

OWN_RULES: Final = frozenset({"UTC", "Etc/UTC"})  # known without any database
OF_THIS_MACHINE: Final = frozenset({"localtime", "posixrules", "Factory"})  # another zone on every host


def zone_named(name: str) -> tzinfo | None:
    """The time zone of that name; None: there is none here, or it is another one on every host.

    Nothing is guessed, and no host's own local time is taken.
    """
    if name in OWN_RULES:
        return UTC
    if name in OF_THIS_MACHINE or name not in zone_names():
        return None
    return zoneinfo.ZoneInfo(name)


@cache
def zone_names() -> frozenset[str]:
    """All zones that this machine knows; read once, because it looks at several hundred files."""
    return frozenset(zoneinfo.available_timezones())
