"""The documents of webhook endpoints: what is sent to make and change them, and how they stand."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, UnsetType

from fencerow.web.gateway.shapes import Given, Instant, Told
from fencerow.web.webhooks.endpoint import (
    FILTER_MAX,
    NAME_LENGTH_MAX,
    OVERLAP_S,
    OVERLAP_S_MAX,
    REASON_LENGTH_MAX,
    Ending,
    EndpointState,
    Order,
)

EndpointName = Annotated[str, Meta(min_length=1, max_length=NAME_LENGTH_MAX)]
Url = Annotated[str, Meta(min_length=1, max_length=4_000)]
SecretText = Annotated[
    str, Meta(max_length=200, description="one of your own, `whsec_…` or `whsk_…`; by default a new one")
]
Filter = Annotated[list[Annotated[str, Meta(min_length=1, max_length=200)]], Meta(max_length=FILTER_MAX)]


class EndpointDocument(Told, frozen=True, kw_only=True):
    """An endpoint as it stands, without its secrets. `open_until`: it is left alone until then, after `failures` in a
    row. `old_until`: so long the secret before the last rotation signs too. `damaged`: what cannot be read."""

    name: str
    url: str
    events: list[str]
    queues: list[str] | None
    jobs: list[str] | None
    tags: list[str] | None
    with_result: bool
    in_order: str
    timeout_s: float
    attempts_max: int
    state: EndpointState
    reason: str | None
    failures: int
    open_until: Instant | None
    version: int
    created_at: Instant
    changed_at: Instant
    changed_by: str | None
    old_until: Instant | None
    damaged: list[str]


class EndpointList(Told, frozen=True, kw_only=True):
    """All endpoints, by name."""

    endpoints: list[EndpointDocument]


class EndpointMade(Told, frozen=True, kw_only=True):
    """An endpoint that was made, and the secret for its receiver: it is told this once. Of a key pair it is the public
    key, `whpk_…`, which is none."""

    endpoint: EndpointDocument
    secret: str


class SecretRotated(Told, frozen=True, kw_only=True):
    """The new secret of an endpoint: it is told this once."""

    name: str
    secret: str


class EndpointMoved(Told, frozen=True, kw_only=True):
    """An endpoint after a verb, and whether that changed anything."""

    name: str
    changed: bool


class EndpointTried(Told, frozen=True, kw_only=True):
    """What came of one `webhook.test`: the status, or what kind of failure kept it from being answered."""

    name: str
    taken: bool
    status: int | None
    failure: str | None
    took_s: float


class EndpointQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which endpoint."""

    name: EndpointName


class EndpointGiven(Given, frozen=True, kw_only=True):
    """What is chosen for an endpoint; docs/guide/webhooks.md has what each means. `null` takes a filter away."""

    events: Annotated[list[Ending], Meta(min_length=1)] | UnsetType = UNSET
    queues: Filter | UnsetType | None = UNSET
    jobs: Filter | UnsetType | None = UNSET
    tags: Filter | UnsetType | None = UNSET
    with_result: bool | UnsetType = UNSET
    in_order: Order | UnsetType = UNSET
    timeout_s: Annotated[float, Meta(ge=1, le=300)] | UnsetType = UNSET
    attempts_max: Annotated[int, Meta(ge=1, le=100)] | UnsetType = UNSET


class NewEndpoint(EndpointGiven, frozen=True, kw_only=True):
    """An endpoint to be made. What is left out is as by default."""

    name: EndpointName
    url: Url
    secret: SecretText | UnsetType = UNSET
    asymmetric: Annotated[bool, Meta(description="signed with a key pair")] = False


class ChangeEndpoint(EndpointGiven, frozen=True, kw_only=True):
    """What is to be changed; what is left out stays. With `version`, only if it is in that version still."""

    name: EndpointName
    url: Url | UnsetType = UNSET
    version: Annotated[int, Meta(ge=1, le=2**62)] | UnsetType = UNSET


class NamedEndpoint(Given, frozen=True, kw_only=True):
    """Which endpoint."""

    name: EndpointName


class DisableEndpoint(NamedEndpoint, frozen=True, kw_only=True):
    """Which endpoint, and why."""

    reason: Annotated[str, Meta(min_length=1, max_length=REASON_LENGTH_MAX)] | None = None


class RotateSecret(NamedEndpoint, frozen=True, kw_only=True):
    """Of which endpoint, and for how many seconds the old secret signs beside the new one."""

    overlap_s: Annotated[float, Meta(ge=0, le=OVERLAP_S_MAX)] = OVERLAP_S
    secret: SecretText | UnsetType = UNSET
    asymmetric: Annotated[bool, Meta(description="with a key pair or not; by default as before")] | None = (
        None
    )
