"""A webhook of type `webhook.test`, sent by this process: whether an endpoint takes what is sent there."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from fencerow.core.model.ids import new_id
from fencerow.core.model.job import moment
from fencerow.web.webhooks.addresses import Allowed
from fencerow.web.webhooks.body import iso
from fencerow.web.webhooks.endpoint import Endpoint
from fencerow.web.webhooks.errors import PostFailed
from fencerow.web.webhooks.pairs import signer_of


@dataclass(frozen=True, slots=True)
class Tried:
    """What came of it. `taken`: it was answered 2xx; `failure`: its kind, where there was no answer."""

    taken: bool
    status: int | None
    failure: str | None
    took_s: float


async def tried(
    endpoint: Endpoint, secrets: Sequence[str], allow: Allowed, *, timeout_s_max: float = 300.0
) -> Tried:
    """Send one, signed by what `endpoints.secrets_of` gives, as all others are. Nothing is stored of it."""
    from fencerow.web.webhooks.posting import post  # with h11: only where something is sent
    from fencerow.web.webhooks.signing import signed_headers

    body = msgspec.json.encode(
        {"type": "webhook.test", "timestamp": iso(moment(endpoint.now_us)), "data": {}}
    )
    signing = [signer_of(each) for each in secrets]
    headers = signed_headers(f"msg_test_{new_id()}", endpoint.now_us // 1_000_000, body, signing)
    timeout_s, began = min(endpoint.timeout_s, timeout_s_max), time.monotonic()
    try:
        reply = await post(endpoint.url, body, headers, timeout_s=timeout_s, allow=allow)
    except PostFailed as error:
        return Tried(False, None, error.kind.value, time.monotonic() - began)
    return Tried(200 <= reply.status < 300, reply.status, None, reply.took_s)
