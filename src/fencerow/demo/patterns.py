"""What values look like, whatever stands beside them."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal

from fencerow.demo.dates import DATE, iso

Kind = Literal["iban", "vat", "email", "url", "date", "amount", "price", "number", "text"]

_CURRENCY: Final = r"(?:€|\$|£|EUR|USD|GBP|CHF)"
# Thousands are grouped by one of . , ' or a space; two decimals always, so 12.5 % is no amount.
_NUMBER: Final = r"(?:\d{1,3}(?:(?P<group>[., '’])\d{3}(?:(?P=group)\d{3})*)?|\d+)[.,]\d{2}"


def _digits(text: str) -> str:
    return "".join(text.split())


def valid_iban(text: str) -> bool:
    """The mod-97 check of ISO 7064: catches every single wrong character and swapped pair."""
    bare = _digits(text)
    moved = bare[4:] + bare[:4]
    return 15 <= len(bare) <= 34 and int("".join(str(int(c, 36)) for c in moved)) % 97 == 1


def _iban(match: re.Match[str]) -> str | None:
    return _digits(match[0]) if valid_iban(match[0]) else None


def _amount(match: re.Match[str]) -> str | None:
    digits = re.sub(r"\D", "", match[0])
    sign = "-" if re.search(r"[-−]", match[0]) else ""
    return f"{sign}{digits[:-2].lstrip('0') or '0'}.{digits[-2:]}"


def _bare(match: re.Match[str]) -> str | None:
    return _digits(match[0])


def _none(_match: re.Match[str]) -> str | None:
    return None


@dataclass(frozen=True, slots=True)
class Pattern:
    """A shape; `required` means that a match without a normal form is no match (a wrong IBAN)."""

    shape: re.Pattern[str]
    normal: Callable[[re.Match[str]], str | None] = _none
    required: bool = False


PATTERNS: Final[dict[Kind, Pattern]] = {
    "iban": Pattern(re.compile(r"\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?\b"), _iban, True),
    "vat": Pattern(
        re.compile(
            r"\b(?:(?:DE|GB|PT|EL|EE) ?\d{3} ?\d{3} ?\d{3}|ATU\d{8}|FR ?[A-Z0-9]{2} ?\d{3} ?\d{3} ?\d{3}"
            r"|NL\d{9}B\d{2}|(?:IT|PL) ?\d{10,11}|BE ?[01]\d{9}|CHE-\d{3}\.\d{3}\.\d{3}"
            r"|(?:DK|FI|HU|LU|SI|MT) ?\d{8}|SE\d{12}|ES[A-Z0-9]\d{7}[A-Z0-9])\b"
        ),
        _bare,
    ),
    "email": Pattern(re.compile(r"\b[\w.+-]{1,64}@(?:[\w-]{1,63}\.){1,8}[A-Za-z]{2,24}\b")),
    "url": Pattern(re.compile(r"\b(?:https?://|www\.)[^\s<>\"']{3,300}(?<![.,;:)\]’”»])")),
    "date": Pattern(DATE, iso),
    "amount": Pattern(  # money anywhere: only with its currency
        re.compile(
            rf"(?<![\w.,])(?:{_CURRENCY} ?[-−]?{_NUMBER}|[-−]?{_CURRENCY} ?{_NUMBER.replace('group', 'g2')}"
            rf"|[-−]?{_NUMBER.replace('group', 'g3')} ?{_CURRENCY})(?![\w]|[.,]\d)"
        ),
        _amount,
    ),
    "price": Pattern(  # money beside a label: with or without
        re.compile(rf"(?<![\w.,])(?:{_CURRENCY} ?)?[-−]?{_NUMBER}(?: ?{_CURRENCY})?(?!\w|[.,]\d)"), _amount
    ),
    "number": Pattern(
        re.compile(r"(?<!\S)(?=[\w./-]*\d)[A-Za-z0-9][\w./-]{0,38}[A-Za-z0-9](?=[.,;)]?(?:\s|$))")
    ),
    "text": Pattern(re.compile(r"\S.{0,118}\S")),
}
# In this order: an IBAN begins like a VAT number, and an address holds an e-mail's dots.
ANYWHERE: Final[tuple[Kind, ...]] = ("iban", "vat", "email", "url", "date", "amount")
