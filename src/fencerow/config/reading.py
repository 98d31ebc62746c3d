"""Settings from the environment, and names that are none.

The environment name of a setting is `FENCEROW_` and its name in capitals: `lease_s` is `FENCEROW_LEASE_S`.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from typing import Any

from fencerow.config.setting import PREFIX, Setting
from fencerow.errors import ConfigError

# Variables that stand for options of the command, which knows their names and refuses others.
COMMAND_PREFIX = "FENCEROW_CLI_"
# Read by the command and the test tools, not by Config.
RESERVED_NAMES = frozenset({"FENCEROW_PG_BIN", "FENCEROW_PG_FROM", "FENCEROW_APP"})


def from_environment(setting: Setting, environ: Mapping[str, str]) -> Any:
    """The value of its variable; None when that is absent or blank.

    Raises:
        ConfigError: it is no number where one is expected.
    """
    text = environ.get(setting.environment_name, "").strip()
    if not text:
        return None
    if not setting.is_number:
        return text
    try:
        # int() and float() would also take underscores and the digits of every script.
        return int(_ascii_number(text)) if setting.is_whole else float(_ascii_number(text))
    except ValueError:
        raise ConfigError(
            f"{setting.environment_name} is {ascii(text)[:40]}",
            f"{'an integer' if setting.is_whole else 'a number'} from {setting.low} to {setting.high} fits",
            "write digits without a unit; the unit is in the name",
        ) from None


def _ascii_number(text: str) -> str:
    if not re.fullmatch(r"[+-]?[0-9]+(\.[0-9]*)?([eE][+-]?[0-9]+)?", text, re.ASCII):
        raise ValueError(text)
    return text


def refuse_unknown_variables(environ: Mapping[str, str], known: Iterable[Setting]) -> None:
    """A misspelled setting must not be passed over: ConfigError names the nearest."""
    names = {setting.environment_name for setting in known} | RESERVED_NAMES
    for name in sorted(environ):
        if name.startswith(PREFIX) and not name.startswith(COMMAND_PREFIX) and name not in names:
            # Its value is not shown: it may be a secret under a misspelled name.
            raise ConfigError(
                f"{ascii(name)[1:-1][:100]} is no setting", "it has no effect", _nearest(name, names)
            )


def refuse_unknown_options(overrides: Mapping[str, Any], known: Iterable[str]) -> None:
    """The same for settings that are given by name."""
    for name in overrides:
        if name not in known:
            raise ConfigError(f"{name} is no setting", "it has no effect", _nearest(name, known))


def _nearest(name: str, names: Iterable[str]) -> str:
    close = difflib.get_close_matches(name, sorted(names), n=3, cutoff=0.6)
    return f"did you mean {' or '.join(close)}?" if close else "see the list of settings"
