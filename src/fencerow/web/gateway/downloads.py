"""Addresses of results that expire: given to who may read the job, good for whoever has one, until it is over.

A large result lies in a store outside the database. Where that gives addresses (S3), it is read there, past the
gateway. All others are read here. Such an address names the job, its attempt and its end, under an HMAC of the
gateway's secret.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import struct
import uuid
from dataclasses import dataclass
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from fencerow.core.client.handle import Handle
from fencerow.core.errors import JobCancelled, JobFailed, JobGone, JobNotFound, NotReady, ResultTimeout
from fencerow.core.model.job import JobRecord
from fencerow.core.model.packed import Bound, outside_of
from fencerow.core.model.state import State
from fencerow.core.store import store
from fencerow.errors import AddressOver, AddressRefused, NoAddress, TooLate, UnderMaintenance, Unready
from fencerow.web.gateway.looking import UNREADABLE, json_of
from fencerow.web.gateway.problem import OF_DATABASE
from fencerow.web.gateway.route import Answer, Call, Route
from fencerow.web.gateway.shapes import Instant, Told, surely
from fencerow.web.settings import WebSettings
from fencerow.web.tokens.scope import Scope

EXPIRES_S = 300
EXPIRES_S_MAX = 3600
SECRET_LENGTH_MIN = 32
SIGNED = struct.Struct(">16sIQ")  # the job, its attempt, the microsecond at which it is over
KEY_OF = b"fencerow result addresses 1"
DIGEST_BYTES = 32


class AddressQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """For how many seconds, and from where; by default from the store where it gives addresses."""

    expires_s: Annotated[int, Meta(ge=1, le=EXPIRES_S_MAX)] = EXPIRES_S
    source: Literal["store", "gateway"] = "store"


class Address(Told, frozen=True, kw_only=True):
    """Where the result is to be had, until when, and by whom it is given. With `store` what is read there should have
    `bytes` bytes and this SHA-256; both are null where the gateway gives it, which compares them itself."""

    id: str
    url: str
    expires_at: Instant
    source: Literal["store", "gateway"]
    bytes: int | None
    sha256: str | None


async def give_address(call: Call) -> Answer:
    """An address of the job's result that expires. Whoever has it needs no token, so give it to none but who may read.

    Good for a browser or a program without a token. A result that lies in a store which gives addresses is read there.
    """
    job, wanted = await call.seen(call.params["id"]), call.query
    now_us = await _now_us(call)
    over_us = now_us + wanted.expires_s * 1_000_000
    stored = await _stored(call, job)
    there = None if wanted.source == "gateway" else await _in_store(call, job, stored, wanted.expires_s)
    if there is not None:
        reference = outside_of(stored)
        assert reference is not None
        return _told(job, there, over_us, "store", reference.bytes, reference.sha256)
    ticket = signed(_key(call), Ticket(job.id, job.attempt, over_us))
    return _told(job, f"{call.base}/v1/downloads/{ticket}", over_us, "gateway")


async def download(call: Call) -> Answer:
    """The result at an address that `/v1/jobs/{id}/download` gave: its JSON, byte for byte as it was stored."""
    ticket = opened(_key(call), call.params["ticket"])
    if ticket.over_us <= await _now_us(call):
        raise AddressOver("the address has expired", "it was good for a while", "ask for a new one")
    job = await call.client.aget(ticket.job_id)
    if job.attempt != ticket.attempt:
        raise AddressOver("the address is over", f"job {job.id} was run again", "ask for a new one")
    headers = {"content-disposition": f'attachment; filename="result-{job.id}.json"'}
    return Answer(200, headers=headers, content=json_of(job.id, await _result(call, job)))


@dataclass(frozen=True, slots=True)
class Ticket:
    """What an address says: of which job's which attempt, and until when, in microseconds since 1970."""

    job_id: str
    attempt: int
    over_us: int


def signed(key: bytes, ticket: Ticket) -> str:
    """The ticket as it stands in an address."""
    said = SIGNED.pack(uuid.UUID(ticket.job_id).bytes, ticket.attempt, ticket.over_us)
    return base64.urlsafe_b64encode(said + hmac.digest(key, said, hashlib.sha256)).decode().rstrip("=")


def opened(key: bytes, text: str) -> Ticket:
    """What an address says that was made with this key.

    Raises:
        AddressRefused: it was not, or was altered.
    """
    padding = "=" * (-len(text) % 4)
    try:
        raw = base64.b64decode(f"{text}{padding}", b"-_", validate=True)
    except ValueError:
        raise _refused() from None
    said, mac = raw[:-DIGEST_BYTES], raw[-DIGEST_BYTES:]
    if len(said) != SIGNED.size or not hmac.compare_digest(mac, hmac.digest(key, said, hashlib.sha256)):
        raise _refused()
    job, attempt, over_us = SIGNED.unpack(said)
    return Ticket(str(uuid.UUID(bytes=job)), attempt, over_us)


def _refused() -> AddressRefused:
    return AddressRefused(
        "the address is none that was given here", "it was cut or altered, or the secret is another one",
        "take all of it, or ask for a new one",
    )  # fmt: skip


def _key(call: Call) -> bytes:
    """By what addresses are signed.

    Raises:
        NoAddress: nobody has set a secret.
    """
    secret = WebSettings.of(call.app.config).web_download_secret
    if secret is None or len(secret) < SECRET_LENGTH_MIN:
        raise NoAddress(
            "the gateway signs no addresses",
            f"web_download_secret is {'not set' if secret is None else 'too short'}",
            f"set it to {SECRET_LENGTH_MIN} characters or more, the same for all gateways, or ask for `/result`",
        )
    return hmac.digest(secret.encode(), KEY_OF, hashlib.sha256)


async def _now_us(call: Call) -> int:
    return await call.app.engine.arun(store.clock())


async def _stored(call: Call, job: JobRecord) -> bytes:
    """The result as its row has it.

    Raises:
        NotReady, JobFailed, JobCancelled, JobGone: there is none.
    """
    if job.state is not State.SUCCEEDED:
        await _result(call, job)
    ended = await call.client.aoutcome(job.id, 0)
    if ended is None:
        raise JobGone(f"job {job.id} is gone", "it was removed meanwhile", "submit the work again if needed")
    return (ended.result or "null").encode()


async def _result(call: Call, job: JobRecord) -> bytes:
    try:
        return await Handle(call.client, job.id, bytes).aresult(0)
    except ResultTimeout as error:
        raise NotReady(error.what, error.why, error.fix) from None


async def _in_store(call: Call, job: JobRecord, stored: bytes, expires_s: int) -> str | None:
    """The store's own address of it; None: there is none."""
    from fencerow.payloads.outside.packing import OutsidePacking

    packing = call.client.packing
    if not isinstance(packing, OutsidePacking):
        return None
    return await packing.aaddress(stored, Bound.result(job.id), expires_s)


def _told(
    job: JobRecord,
    url: str,
    over_us: int,
    source: Literal["store", "gateway"],
    length: int | None = None,
    sha256: str | None = None,
) -> Answer:
    told = Address(id=job.id, url=url, expires_at=surely(over_us), source=source, bytes=length, sha256=sha256)
    return Answer(200, told)


WITHOUT = (JobNotFound, JobGone, NotReady, JobFailed, JobCancelled, *UNREADABLE)
ROUTES = (
    Route(
        "GET", "/v1/jobs/{id}/download", "getResultAddress", give_address, Scope.READ, {200: Address},
        query=AddressQuery, refusals=(NoAddress, *WITHOUT),
    ),
    # Without a token: the address itself says who was allowed what.
    Route(
        "GET", "/v1/downloads/{ticket}", "downloadResult", download, None, {200: None},
        refusals=(AddressRefused, AddressOver, NoAddress, *WITHOUT, Unready, UnderMaintenance, TooLate, *OF_DATABASE),
    ),
)  # fmt: skip
