"""Settings from the environment.

The environment name of a setting is `FENCEROW_` and its name in capitals: `lease_s` is `FENCEROW_LEASE_S`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from fencerow.core.config.setting import Setting
from fencerow.core.errors import ConfigError


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
