"""What can be wrong with settings, declarations and the platform (1xx)."""

from __future__ import annotations

import fencerow.core.errors.exits as exits
from fencerow.core.errors.base import FencerowError


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


class DeclarationError(FencerowError):
    """A job was declared in a way that cannot work (name taken, unsupported parameter kind, bad option)."""

    code = "FR-104"
    exit_code = exits.REFUSED


class NoDatabase(ConfigError):
    """No database was named, and there is no local file to use instead. Give --url or FENCEROW_URL."""

    code = "FR-105"


class NotImportable(DeclarationError):
    """A job that runs in child processes cannot be found by importing the module that declares it."""

    code = "FR-106"
    retryable = True  # as an attempt's failure: another worker may find it
