"""Time zones by name, the version of their rules, and what to say where a machine has none.

The zones are the system's, or those of the package `tzdata` where the system has none. Two workers with different
versions may compute different instants for the same local time, so the version is stored with what was computed.
"""

from __future__ import annotations

import difflib
import hashlib
import zoneinfo
from datetime import UTC, tzinfo
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Final

from fencerow.calendar.errors import UnknownZone
from fencerow.calendar.walls import offset
from fencerow.db.text import shown

OWN_RULES: Final = frozenset({"UTC", "Etc/UTC"})  # known without any database
OF_THIS_MACHINE: Final = frozenset({"localtime", "posixrules", "Factory"})  # another zone on every host
NONE = "none"
NAME_LENGTH_MAX = 80  # of a name that others are compared with
ZONES_MIN = 100  # a machine with fewer has no database, but a file or two that something left there
NO_DATABASE = 'install the zones of your system (the package "tzdata"), or `pip install "fencerow[tz]"`'
SAMPLE = ("Europe/Berlin", "America/New_York", "Africa/Casablanca", "Asia/Gaza", "America/Santiago")
SAMPLED = (1_704_067_200, 2_019_686_400, 6 * 3600)  # 2024 to 2033, every six hours


def zone(name: str) -> tzinfo:
    """The time zone of that name. Raises UnknownZone: nothing is guessed, and no host's own local time is taken."""
    if name in OWN_RULES:
        return UTC
    if name in OF_THIS_MACHINE or name not in zone_names():
        raise _unknown(name, zone_names())
    return zoneinfo.ZoneInfo(name)


@cache
def zone_names() -> frozenset[str]:
    """All zones that this machine knows; read once, because it looks at several hundred files."""
    return frozenset(zoneinfo.available_timezones())


def database_missing() -> bool:
    """Whether this machine has no time zones, as slim images do: then no schedule in a zone can be computed here."""
    return len(zone_names()) < ZONES_MIN


@cache
def tzdata_version() -> str:
    """The version of this machine's zones, such as `2025b`; without a label, a digest of some of their files.

    `none` where there are no zones. Two hosts with the same answer compute the same instants.
    """
    if database_missing():
        return NONE
    place = _system()
    label = _label_of_package() if place is None else _label_of_system(place)
    return label or f"unlabelled-{_digest()}"


def _unknown(name: str, known: frozenset[str]) -> UnknownZone:
    if database_missing():
        return UnknownZone(
            f"no time zone {shown(name)}", "this machine has no time zone database", NO_DATABASE
        )
    if name in OF_THIS_MACHINE:
        why = "it means another zone on every host, so workers would compute different instants"
        fix = "name the zone itself, such as Europe/Berlin"
        return UnknownZone(f"time zone {shown(name)} is refused", why, fix)
    by_folded = {each.casefold(): each for each in known}
    folded = name[:NAME_LENGTH_MAX].casefold().replace(" ", "_")
    close = difflib.get_close_matches(folded, sorted(by_folded), n=3, cutoff=0.6)
    cities = [each for each in sorted(known) if each.rpartition("/")[2].casefold() == name.casefold()]
    best = list(dict.fromkeys([*cities, *(by_folded[each] for each in close)]))[:3]
    why = (
        f"the closest names are {', '.join(best)}"
        if best
        else "names are those of IANA, such as Europe/Berlin"
    )
    return UnknownZone(
        f"no time zone {shown(name)}",
        why,
        f"write a name of the time zones that are here, those of {tzdata_version()}",
    )


def _system() -> Path | None:
    """The first place on the path that has zones: the one that zoneinfo reads."""
    return next((place for place in map(Path, zoneinfo.TZPATH) if (place / SAMPLE[0]).is_file()), None)


def _label_of_system(place: Path) -> str | None:
    """Linux keeps it in the first line of the source of all zones, macOS and the BSDs in a file of its own."""
    for name, prefix in (("tzdata.zi", "# version "), ("+VERSION", "")):
        label = _first_line(place / name)
        if label is not None and label.startswith(prefix):
            return label.removeprefix(prefix)
    return None


def _first_line(path: Path) -> str | None:
    try:
        with path.open(encoding="utf-8") as file:
            return file.readline().strip() or None
    except OSError:
        return None


def _label_of_package() -> str | None:
    try:
        label = getattr(import_module("tzdata"), "IANA_VERSION", None)
    except ImportError:
        return None
    return label if isinstance(label, str) else None


def _digest() -> str:
    """Of some zones as they are computed, because the same rules are stored in files of several forms."""
    found = hashlib.blake2b(digest_size=6)
    for name in SAMPLE:
        rules = zone(name)
        found.update(repr([offset(rules, instant) for instant in range(*SAMPLED)]).encode())
    return found.hexdigest()
