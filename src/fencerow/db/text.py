"""Short texts that people and the database both read: names, keys, notes."""

from __future__ import annotations

import re
import shlex

from fencerow.db.errors import InvalidInput

CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
SURROGATE = re.compile(r"[\ud800-\udfff]")
# C0 and C1 controls, line and paragraph separators, marks that turn the direction of text, surrogates.
UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
SHORT_ESCAPES = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def amount(number: int, one: str, more: str | None = None) -> str:
    """A number with its noun for people: `1 slot`, `2 slots`. `more` is said of all numbers but 1: `one` and an s."""
    return f"{number} {one if number == 1 else more or f'{one}s'}"


def percent(value: float) -> str:
    """How far something is, for people: `40 %`, `16.7 %`."""
    return f"{value:.1f}".removesuffix(".0") + " %"


def shown(value: object, length_max: int = 80) -> str:
    """Anything that was given, for people: short, also a number of more digits than Python writes."""
    try:
        return ascii(value)[:length_max]
    except Exception:  # a representation of somebody's own may raise what it likes
        return f"of type {type(value).__name__} and cannot be shown"


def check_text(value: object, what: str, length_max: int, *, lines: bool = False, empty: bool = False) -> str:
    """Return `value` if it is text that can be kept and shown, at most `length_max` characters long.

    NUL and lone surrogates are refused always, because PostgreSQL cannot store them. Other control characters
    are refused in names and keys, where they can only deceive; `lines` lets them pass in notes and log
    messages, which are escaped when shown. `empty` permits the empty text.

    Raises:
        InvalidInput: the text breaks one of these rules; the message shows where, never the whole text.
    """
    if not isinstance(value, str):
        raise InvalidInput(f"{what} is of type {type(value).__name__}", "it must be text", "pass a str")
    if not value and not empty:
        raise InvalidInput(f"{what} is empty", "it must hold at least one character", f"give {what} a value")
    if len(value) > length_max:
        raise InvalidInput(
            f"{what} has {len(value)} characters", f"at most {length_max} are kept", f"shorten {what}"
        )
    _check_characters(value, what, lines)
    return value


def _check_characters(value: str, what: str, lines: bool) -> None:
    bad = re.search("\x00", value) if lines else CONTROL.search(value)
    bad = bad or SURROGATE.search(value)
    if bad:
        raise InvalidInput(
            f"{what} contains U+{ord(bad.group()):04X} at position {bad.start()}",
            "NUL, lone surrogates and control characters cannot be kept here",
            "remove the character",
        )


def shortened(text: str, length_max: int) -> str:
    """The beginning of a long text, up to the end of a word where one ends in the second half of it."""
    if len(text) <= length_max:
        return text
    cut = text[: length_max - 2]
    end = cut.rfind(" ")
    return f"{cut[:end] if end > length_max // 2 else cut} …"


def kind_and_text(kind: str, text: str) -> str:
    """What is said of an error in a line: its kind, and behind a colon its text, as far as it has both."""
    return ": ".join(each for each in (kind.strip(), text.strip()) if each)


def said_of(error: BaseException) -> str:
    """`kind_and_text` of an error, also of one whose own `__str__` fails."""
    try:
        text = str(error)
    except Exception as broken:
        text = f"<no message: str() of this error raised {type(broken).__name__}>"
    return kind_and_text(type(error).__name__, text)


def storable(text: str) -> str:
    """`text` with NUL and lone surrogates replaced by U+FFFD, for what must be kept whatever it holds."""
    return SURROGATE.sub("\ufffd", text.replace("\x00", "\ufffd"))


def clean(text: str) -> str:
    """`text` on one line; whatever could move a cursor or forge a log line is escaped."""
    return UNPRINTABLE.sub(_escape, text)


def argument(text: str) -> str:
    """A name as a shell takes it for one argument, and the command for no option: people copy what a message says."""
    return f"-- {shlex.quote(text)}" if text.startswith("-") else shlex.quote(text)


def _escape(found: re.Match[str]) -> str:
    character = found.group()
    short = SHORT_ESCAPES.get(character)
    if short:
        return short
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
