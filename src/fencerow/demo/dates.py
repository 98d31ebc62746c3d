"""Dates as people print them in English, German and French."""

from __future__ import annotations

import re
from datetime import date
from typing import Final

_NAMES: Final = (
    "january januar janvier jan janv",
    "february februar février feb févr fév",
    "march märz mars mar mär",
    "april avril apr avr",
    "may mai",
    "june juni juin jun",
    "july juli juillet jul juil",
    "august août aug",
    "september septembre sep sept",
    "october oktober octobre oct okt",
    "november novembre nov",
    "december dezember décembre dec dez déc",
)
_MONTH: Final = {name: n for n, names in enumerate(_NAMES, 1) for name in names.split()}
_WORD: Final = "|".join(sorted(_MONTH, key=len, reverse=True))

DATE: Final = re.compile(
    r"(?<![\w.,/-])(?:"
    r"(?P<y1>\d{4})-(?P<m1>\d{2})-(?P<d1>\d{2})"
    r"|(?P<d2>\d{1,2})(?P<sep>[./])(?P<m2>\d{1,2})(?P=sep)(?P<y2>\d{4}|\d{2})"
    rf"|(?P<d3>\d{{1,2}})(?:st|nd|rd|th|er|\.)?[ -](?P<m3>{_WORD})\.?[ -](?P<y3>\d{{4}})"
    rf"|(?P<m4>{_WORD})\.? (?P<d4>\d{{1,2}})(?:st|nd|rd|th)?, (?P<y4>\d{{4}})"
    r")(?![\w/-]|[.,]\d)",
    re.IGNORECASE,
)


def iso(match: re.Match[str]) -> str | None:
    """The day in ISO form, or None where 03/04/2026 could be either of two days or is no day."""
    year, month, day = (_part(match, letter) for letter in "ymd")
    if match["sep"] == "/" and month != day:
        if month <= 12 and day <= 12:
            return None
        if month > 12:
            month, day = day, month
    try:
        return date(year + 2000 if year < 100 else year, month, day).isoformat()
    except ValueError:
        return None


def _part(match: re.Match[str], letter: str) -> int:
    text = next(match[f"{letter}{n}"] for n in range(1, 5) if match[f"{letter}{n}"])
    return _MONTH[text.lower()] if text.lower() in _MONTH else int(text)
