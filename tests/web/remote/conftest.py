"""The gateway's own fixtures, found here too."""

from __future__ import annotations

from tests.web.gateway.conftest import door as door
from tests.web.gateway.conftest import lite_app as lite_app
