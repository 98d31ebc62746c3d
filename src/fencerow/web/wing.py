"""The front door, as the core is told of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fencerow.core.wing import Wing

if TYPE_CHECKING:
    from fencerow.core.config import Settings


def _settings() -> type[Settings]:
    from fencerow.web.settings import WebSettings

    return WebSettings


WING = Wing("web", settings=_settings)
