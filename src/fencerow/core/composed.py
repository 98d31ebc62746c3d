"""Which configuration a process has: the core's with the settings of all wings, which are above it.

Told by name alone, so that a program which never makes an app does not load them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fencerow.core.config import CoreConfig

_config: Callable[[], type[CoreConfig]] | None = None


def compose(config: Callable[[], type[CoreConfig]]) -> None:
    """Said once, by the package itself when it is imported."""
    global _config
    _config = config


def config_type() -> type[CoreConfig]:
    """What settings are loaded into, and what travels to a child process."""
    assert _config is not None, "the package says it when it is imported"
    return _config()
