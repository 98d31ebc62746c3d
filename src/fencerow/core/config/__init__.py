"""Every setting with its unit, default and environment name.

A blank variable counts as absent. One that is nearly a setting is an error: a slip must not be passed over.
"""

from __future__ import annotations

from fencerow.core.config.config import LOG_FORMATS, LOG_LEVELS, CoreConfig, Settings, settings
from fencerow.core.config.setting import PREFIX, Setting, number, text
from fencerow.core.config.variables import COMMAND_PREFIX, RESERVED_NAMES, is_injected

__all__ = [
    "COMMAND_PREFIX",
    "LOG_FORMATS",
    "LOG_LEVELS",
    "PREFIX",
    "RESERVED_NAMES",
    "CoreConfig",
    "Setting",
    "Settings",
    "is_injected",
    "number",
    "settings",
    "text",
]
