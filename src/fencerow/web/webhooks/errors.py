"""Errors of one webhook on its way: its signature at the receiver, its URL, its POST (860 to 862)."""

from __future__ import annotations

from enum import StrEnum
from typing import ClassVar

import fencerow.db.errors.exits as exits
from fencerow.db.errors.base import FencerowError


class WebhookRefusal(StrEnum):
    """Why a receiver does not believe a webhook."""

    HEADERS = "headers"  # one is missing, comes twice, or is malformed
    TOO_OLD = "too_old"
    TOO_NEW = "too_new"
    SIGNATURE = "signature"  # none of them is of this body under one of the secrets
    REPLAYED = "replayed"


class WebhookRefused(FencerowError):
    """A webhook is not from whom it says, was altered, is too old, or came before; `reason` says which. Answer 400."""

    code = "FR-860"
    exit_code = exits.REFUSED

    def __init__(
        self, what: str, why: str = "", fix: str = "", *, reason: WebhookRefusal = WebhookRefusal.HEADERS
    ) -> None:
        super().__init__(what, why, fix)
        self.reason = reason


class WebhookUrlRefused(FencerowError):
    """A webhook cannot be sent to this URL: it is malformed, or leads where webhooks may not go. Nothing was stored."""

    code = "FR-861"
    exit_code = exits.REFUSED
    status: ClassVar[int] = 422


class FailedBy(StrEnum):
    """What kept a POST from being answered."""

    REFUSED_ADDRESS = "refused_address"
    DNS = "dns"
    CONNECT = "connect"
    TLS = "tls"
    TIMEOUT = "timeout"
    RESET = "reset"
    TOO_LARGE = "too_large"
    PROTOCOL = "protocol"


SAYS = {
    FailedBy.REFUSED_ADDRESS: "its URL leads where webhooks may not go",
    FailedBy.DNS: "its host has no address",
    FailedBy.CONNECT: "no connection came about",
    FailedBy.TLS: "TLS failed, or its certificate is not for this host",
    FailedBy.TIMEOUT: "it took too long",
    FailedBy.RESET: "the connection ended before an answer",
    FailedBy.TOO_LARGE: "the head of its answer is too large",
    FailedBy.PROTOCOL: "its answer is not HTTP/1.1",
}


class PostFailed(FencerowError):
    """A webhook was not answered. `kind` says why, in general words: never an address, nor what a server said."""

    code = "FR-862"
    repeat = "yes"  # it may have arrived; under its old id the receiver knows it again

    def __init__(
        self,
        what: str,
        why: str = "",
        fix: str = "",
        *,
        kind: FailedBy = FailedBy.PROTOCOL,
        took_s: float = 0.0,
    ) -> None:
        super().__init__(what, why, fix)
        self.kind = kind
        self.took_s = took_s

    @classmethod
    def by(cls, kind: FailedBy, took_s: float = 0.0) -> PostFailed:
        """The error of this kind, in its general words."""
        return cls(f"the receiver did not answer: {SAYS[kind]}", f"kind: {kind}", kind=kind, took_s=took_s)
