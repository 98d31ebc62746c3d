"""Endpoints that are told nothing, that fail, or that wait."""

from __future__ import annotations

from collections.abc import Iterator

from fencerow.command.times import span
from fencerow.core.config import CoreConfig
from fencerow.core.finding import Finding, fail, ok, warn
from fencerow.db.engine import Engine
from fencerow.db.text import amount
from fencerow.web.webhooks.endpoints import read
from fencerow.web.webhooks.keeping import EndpointTrouble, troubles

LATE_S = 3600.0
LOOKED_AT = 10_000


def examine_webhooks(engine: Engine, _config: CoreConfig) -> Iterator[Finding]:
    """Each endpoint; nothing is said where there is none."""
    found = engine.run(troubles(look=LOOKED_AT))
    for endpoint in engine.run(read()):
        if endpoint.damaged:
            yield fail(
                "webhook endpoint that cannot be read",
                f"endpoint {endpoint.name}: {', '.join(endpoint.damaged)} was changed by hand; it is told nothing",
                f"`fencerow webhooks remove {endpoint.name}`, and add it again",
            )
    for each in found:
        yield from _endpoint(each)
    if found:
        pending = sum(each.pending for each in found)
        yield ok(
            "webhooks",
            f"{amount(len(found), 'endpoint')}, {amount(pending, 'delivery', 'deliveries')} under way",
        )


def _endpoint(found: EndpointTrouble) -> Iterator[Finding]:
    if found.state == "gone":
        yield warn(
            "webhook endpoint that is gone",
            f"endpoint {found.name} is told nothing: {found.reason}",
            f"`fencerow webhooks enable {found.name}` when it takes webhooks again, or remove it",
        )
    elif found.open_until_us is not None:
        yield warn(
            "webhook endpoint that fails",
            f"endpoint {found.name} failed {amount(found.failures, 'time')} in a row and is left alone for a while",
            f"ask who runs it; `fencerow webhooks deliveries {found.name}` shows what it answered",
        )
    if found.failed:
        yield warn(
            "webhooks that did not arrive",
            f"{amount(found.failed, 'delivery', 'deliveries')} to endpoint {found.name} failed",
            f"`fencerow webhooks redeliver {found.name}` when it takes webhooks again",
        )
    waited_s = 0.0 if found.since_us is None else (found.now_us - found.since_us) / 1e6
    if waited_s > LATE_S:
        yield warn(
            "webhooks that wait",
            f"{amount(found.pending, 'delivery', 'deliveries')} to endpoint {found.name} under way, the first for "
            f"{span(waited_s)}",
            "see its last answers; where there are none, run a worker whose application says deliver_webhooks(app)",
        )
