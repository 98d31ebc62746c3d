"""An app on a fresh migrated database of each kind, as the tests of applications have it."""

from tests.core.app.conftest import app, lite_app, url  # noqa: F401 (fixtures)
