"""An app on a fresh migrated database of each kind, as the tests of applications have it."""

from tests.app.conftest import app, lite_app, url  # noqa: F401 (fixtures)
