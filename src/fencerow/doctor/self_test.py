"""What a worker looks at when it starts: some of the doctor's checks, side by side, within a bound. It changes none."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Final

from fencerow.core.config import CoreConfig
from fencerow.core.errors import FencerowError
from fencerow.core.finding import Finding, Level, failed, info, warn
from fencerow.db.engine import Engine
from fencerow.db.text import said_of
from fencerow.doctor import schema

WITHIN_S = 2.0
EXTRAS: Final[Mapping[str, str]] = {
    "prometheus": "prometheus_client",
    "otel": "opentelemetry",
    "web": "starlette",
    "seal": "cryptography",
    "s3": "boto3",
}
Check = Callable[[], Iterable[Finding]]


@dataclass(slots=True)
class SelfTest:
    """What was found, in the order of the checks; `extras` are those that are installed."""

    findings: list[Finding] = field(default_factory=list)
    extras: list[str] = field(default_factory=list)
    took_s: float = 0.0

    @property
    def wrong(self) -> list[Finding]:
        """What somebody should do something about."""
        return [each for each in self.findings if each.level in (Level.WARN, Level.FAIL)]

    @property
    def told(self) -> str:
        """The checks that found all well."""
        return ", ".join(each.name for each in self.findings if each.level is Level.OK)


def self_test(engine: Engine, config: CoreConfig, *, within_s: float = WITHIN_S) -> SelfTest:
    """Look at all of them at once, for so long at most: one that takes longer is told, and nobody waits for it.
    Whatever a check meets becomes a finding."""
    began = time.monotonic()
    checks = dict(_checks(engine, config))
    found: dict[str, list[Finding]] = {}
    threads = [
        threading.Thread(target=_look, args=(name, check, found), name=f"fencerow-look-{name}", daemon=True)
        for name, check in checks.items()
    ]
    for each in threads:
        each.start()
    for each in threads:
        each.join(max(0.0, began + within_s - time.monotonic()))
    findings = [each for name in checks for each in found.get(name) or [_slow(name, within_s)]]
    extras = [name for name, module in EXTRAS.items() if find_spec(module) is not None]
    return SelfTest(findings, extras, time.monotonic() - began)


def _checks(engine: Engine, config: CoreConfig) -> Iterator[tuple[str, Check]]:
    yield "schema", lambda: schema.examine_schema(engine)
    if engine.traits.has_server:
        from fencerow.doctor.self_test_postgres import checks  # with its driver: only where it is used
    else:
        from fencerow.doctor.self_test_sqlite import checks
    yield from checks(engine, config)


def _look(name: str, check: Check, found: dict[str, list[Finding]]) -> None:
    try:
        found[name] = list(check())
    except FencerowError as error:
        found[name] = [failed(name, error)]
    except Exception as error:  # of a driver, perhaps: a worker starts all the same
        said = f"this check could not be made: {said_of(error)}"[:300]
        found[name] = [warn(name, said, "ask `fencerow doctor`")]


def _slow(name: str, within_s: float) -> Finding:
    return info(
        name, f"no answer within {within_s:g} s; the worker starts all the same", "ask `fencerow doctor`"
    )
