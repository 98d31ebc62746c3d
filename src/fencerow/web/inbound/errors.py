"""Errors of webhooks that come in (972 to 974)."""

from __future__ import annotations

from typing import ClassVar

from fencerow.db.errors.base import FencerowError
from fencerow.db.errors.input import InvalidInput
from fencerow.db.errors.settings import ConfigError
from fencerow.web.webhooks.errors import WebhookRefusal


class InboundRefused(FencerowError):
    """A webhook that came in is not from whom it says, was altered, or is not of now; `reason` says which. Nothing was
    stored."""

    code = "FR-972"
    status: ClassVar[int] = 400

    def __init__(
        self, what: str, why: str = "", fix: str = "", *, reason: WebhookRefusal = WebhookRefusal.HEADERS
    ) -> None:
        super().__init__(what, why, fix)
        self.reason = reason


class SecretMissing(ConfigError):
    """No environment variable has the secret of webhooks that come in, or what it has cannot be one. Set it where the
    gateway runs."""

    code = "FR-973"


class InboundUnfit(InvalidInput):
    """A webhook that came in is signed rightly, and lacks what its scheme says it has, such as its id. Nothing was
    stored."""

    code = "FR-974"
    status: ClassVar[int] = 422


def refused(reason: WebhookRefusal, what: str) -> InboundRefused:
    """The refusal of a webhook. Nothing of what was sent is repeated in it."""
    return InboundRefused(
        what,
        "a webhook is taken if it is signed with a secret of this hook, and of now",
        "compare the secret, the scheme and the clock",
        reason=reason,
    )
