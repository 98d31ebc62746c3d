"""The operations on endpoints: made, read, changed, rotated, enabled, disabled, removed. Each has one winner."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from fencerow.db.run import Param, Steps, execute, operation, text_or_none
from fencerow.events.groups import make_group
from fencerow.web.webhooks.endpoint import Endpoint, EndpointWanted, endpoint_of

GROUP: Final = "fencerow-webhooks"  # reads the ends of jobs for all endpoints
TOPICS: Final = ("job.cancelled", "job.failed", "job.succeeded")


@operation()
def add(id_: str, name: str, wanted: EndpointWanted, secret: str, *, actor: str | None) -> Steps[bool]:
    """Make an endpoint, and the group that reads for all of them: what is submitted from then on tells its end.

    False: another one has this name.
    """
    yield from make_group(GROUP, TOPICS, partitions=1).steps()
    return bool(
        (yield from execute("add_endpoint", _columns(wanted), id=id_, name=name, secret=secret, actor=actor))
    )


@operation(alone=True, repeatable=True, writes="")
def read(name: str | None = None) -> Steps[list[Endpoint]]:
    """The endpoint of this name, or all of them by name."""
    return [endpoint_of(row) for row in (yield from execute("read_endpoints", name=name))]


@operation(alone=True, repeatable=True, writes="")
def secrets_of(name: str) -> Steps[list[str]]:
    """The secrets by which an endpoint knows us now, the current one first; none: there is no such endpoint."""
    rows = yield from execute("read_endpoint_secrets", name=name)
    return [text for row in rows for text in map(text_or_none, row) if text is not None]


@operation(alone=True)
def change(name: str, version: int, wanted: EndpointWanted, *, actor: str | None) -> Steps[bool]:
    """Change what an endpoint is. False: it is not in this version any more."""
    return bool(
        (yield from execute("change_endpoint", _columns(wanted), name=name, version=version, actor=actor))
    )


@operation(alone=True)
def rotate(name: str, secret: str, *, overlap_s: float, actor: str | None) -> Steps[bool]:
    """A new secret, and the one until now beside it for a while. False: an older one still signs, or there is none."""
    return bool(
        (yield from execute("rotate_endpoint", name=name, secret=secret, overlap_s=overlap_s, actor=actor))
    )


@operation(alone=True, repeatable=True)
def retire(name: str, *, actor: str | None) -> Steps[bool]:
    """Let the old secret sign no more. False: there was none."""
    return bool((yield from execute("retire_endpoint_secret", name=name, actor=actor)))


@operation(alone=True, repeatable=True)
def enable(name: str, *, actor: str | None) -> Steps[bool]:
    """Tell it again of ends, from now on. False: it is enabled already."""
    return bool((yield from execute("enable_endpoint", name=name, actor=actor)))


@operation(alone=True, repeatable=True)
def disable(name: str, *, reason: str | None, actor: str | None) -> Steps[bool]:
    """Tell it nothing more. False: it is not enabled."""
    return bool((yield from execute("disable_endpoint", name=name, reason=reason, actor=actor)))


@operation(alone=True, repeatable=True)
def remove(name: str, *, actor: str | None) -> Steps[bool]:
    """Forget it; purges take its deliveries. False: it is not there."""
    return bool((yield from execute("remove_endpoint", name=name, actor=actor)))


def _columns(wanted: EndpointWanted) -> dict[str, Param]:
    return {
        "url": wanted.url,
        "events": _text(wanted.events),
        "queues": _text(wanted.queues),
        "jobs": _text(wanted.jobs),
        "tags": _text(wanted.tags),
        "with_result": wanted.with_result,
        "in_order": wanted.in_order,
        "timeout_s": wanted.timeout_s,
        "attempts_max": wanted.attempts_max,
    }


def _text(names: Sequence[str] | None) -> str | None:
    return None if names is None else msgspec.json.encode(names).decode()
