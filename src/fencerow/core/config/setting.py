"""One setting: how it is declared, and whether a value fits it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from fencerow.core.errors import ConfigError
from fencerow.db.numbers import check_number

PREFIX = "FENCEROW_"


@dataclass(frozen=True, slots=True)
class Setting:
    """One line of the reference: what a setting means, and which values it takes."""

    name: str
    default: Any
    doc: str
    low: float | None = None
    high: float | None = None
    choices: tuple[str, ...] = ()
    secret: bool = False

    @property
    def environment_name(self) -> str:
        """The variable that sets it."""
        return PREFIX + self.name.upper()

    @property
    def is_number(self) -> bool:
        """Whether it takes a number, in the unit its name ends with."""
        return self.low is not None

    @property
    def is_whole(self) -> bool:
        """Whether the number must be an integer."""
        return isinstance(self.low, int)


def number(default: Any, low: float, high: float, doc: str) -> Any:
    """A number; whole if both bounds are integers."""
    return field(default=default, metadata={"doc": doc, "low": low, "high": high})


def text(default: Any, doc: str, *choices: str, secret: bool = False) -> Any:
    return field(default=default, metadata={"doc": doc, "choices": choices, "secret": secret})


def check(setting: Setting, value: Any) -> None:
    """Refuse a value of the wrong type or out of range.

    Raises:
        ConfigError: what was found, and what fits.
    """
    if value is None and setting.default is None:
        return
    if setting.is_number and setting.low is not None and setting.high is not None:
        check_number(setting.name, value, setting.low, setting.high)
        return
    if not isinstance(value, str):
        raise ConfigError(
            f"{setting.name} is of type {type(value).__name__}", "text is expected", f"correct {setting.name}"
        )
    if setting.choices and value not in setting.choices:
        raise ConfigError(
            f"{setting.name} is {ascii(value)[:60]}",
            f"expected one of {', '.join(setting.choices)}",
            f"correct {setting.name}",
        )
    if "\0" in value or (setting.name == "actor" and not value.isprintable()):
        raise ConfigError(
            f"{setting.name} contains a control character", "plain text is expected", "remove it"
        )
