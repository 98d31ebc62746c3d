"""What can be wrong with the settings of a process and with its platform (1xx)."""

from __future__ import annotations

import fencerow.db.errors.exits as exits
from fencerow.db.errors.base import FencerowError


class ConfigError(FencerowError):
    """A setting is unknown, has the wrong type, or is out of range. Correct it; nothing was started."""

    code = "FR-101"
    exit_code = exits.REFUSED


class UrlError(ConfigError):
    """The database URL cannot be understood. Passwords in it are never shown."""

    code = "FR-102"


class MissingExtra(FencerowError):
    """An optional library is not installed. Install the extra named in `fix`."""

    code = "FR-103"
    exit_code = exits.REFUSED


class UnsupportedPlatform(FencerowError):
    """This operating system is not supported. Use Linux or macOS."""

    code = "FR-107"


class NoDatabase(ConfigError):
    """No database was named, and there is no local file to use instead. Give --url or FENCEROW_URL."""

    code = "FR-105"
