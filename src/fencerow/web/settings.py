"""The settings of the front door, a part of `Config`."""

from __future__ import annotations

from dataclasses import dataclass

from fencerow.core.config import Settings, number


@dataclass(frozen=True, kw_only=True)
class WebSettings(Settings):
    """How what comes over HTTP is judged."""

    web_token_cache_s: float = number(
        5.0,
        0.0,
        60.0,
        "How long a gateway believes what it read of an API token: a revoke counts everywhere after so long at most.",
    )
