"""Errors of the front door: of tokens and the gateway (85x), of webhooks (86x)."""

from __future__ import annotations

from fencerow.core.errors.base import FencerowError


class TokenNotFound(FencerowError):
    """There is no API token with this id: nobody made one, or it was over for so long that it was removed."""

    code = "FR-850"


class TokenOver(FencerowError):
    """The API token was over already: somebody else revoked it, or it expired. Nothing was changed."""

    code = "FR-851"
