"""What an app and its workers are given, checked at the door: a wrong value is told with what is expected."""

from __future__ import annotations

from collections.abc import Mapping

from fencerow.core.config import CoreConfig
from fencerow.core.errors import ConfigError
from fencerow.core.model.defaults import Defaults
from fencerow.core.telemetry import Telemetry


def check_given(config: object, defaults: object, queues: object, telemetry: object) -> None:
    """Make sure that an app can be made of these.

    Raises:
        ConfigError: one of them is something else.
    """
    _check("config", config, CoreConfig, "pass Config(slots=10, ...)")
    _check("defaults", defaults, Defaults, "pass Defaults(attempts_max=5, ...)")
    _check("queues", queues, Mapping, 'pass {"mail": Defaults(priority=10)}')
    _check("telemetry", telemetry, Telemetry, "leave it out, or pass a Telemetry")
    if isinstance(queues, Mapping):
        for name, each in queues.items():
            _check(
                f"queues[{ascii(name)[:60]}]",
                each,
                Defaults,
                "pass Defaults(priority=10); its slots are a worker's",
            )


def _check(what: str, given: object, kind: type, fix: str) -> None:
    if given is not None and not isinstance(given, kind):
        name = kind.__name__.removeprefix("Core")
        raise ConfigError(f"{what} is of type {type(given).__name__}", f"a {name} is expected", fix)
