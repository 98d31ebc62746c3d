"""Writes docs/reference/openapi.json: the gateway's OpenAPI document, kept so that each change of it is seen.

    python -m tools.openapi

`dev.py check` and tests/web/gateway/test_openapi.py compare them. The version of Fencerow is left out: it changes by
itself.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from fencerow import App
from fencerow.web.gateway.asgi import Gateway

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "openapi.json"


def page() -> bytes:
    """The document as it is kept."""
    told = Gateway(App("sqlite:///never-opened.db")).openapi
    told["info"]["version"] = ""
    return msgspec.json.format(msgspec.json.encode(told), indent=1) + b"\n"


if __name__ == "__main__":
    PAGE.write_bytes(page())
