"""Every setting with its unit, default and environment name.

A blank variable counts as absent. An unknown one is an error: a misspelled setting must not be passed over.
"""

from __future__ import annotations

from fencerow.config.config import Config, settings
from fencerow.config.reading import COMMAND_PREFIX, RESERVED_NAMES
from fencerow.config.setting import PREFIX, Setting
from fencerow.model.backoff import Backoff
from fencerow.model.defaults import Defaults
from fencerow.model.url import DatabaseUrl, PostgresUrl, SqliteUrl, masked, parse_url

__all__ = [
    "COMMAND_PREFIX",
    "PREFIX",
    "RESERVED_NAMES",
    "Backoff",
    "Config",
    "DatabaseUrl",
    "Defaults",
    "PostgresUrl",
    "Setting",
    "SqliteUrl",
    "masked",
    "parse_url",
    "settings",
]
