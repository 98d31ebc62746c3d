"""Errors of the doctor (93x)."""

from __future__ import annotations

from typing import ClassVar

from fencerow.db.errors.base import FencerowError


class CanaryRefused(FencerowError):
    """No canary was sent: another one is under way, or it would disturb. Nothing was stored."""

    code = "FR-933"
    status: ClassVar[int] = 409
