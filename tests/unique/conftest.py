"""An app on a fresh migrated database of each kind, as those of the core's options have it."""

from __future__ import annotations

from tests.core.app.conftest import app, lite_app, url

__all__ = ["app", "lite_app", "url"]
