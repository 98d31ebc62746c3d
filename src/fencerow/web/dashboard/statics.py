"""Style, scripts and pictures, under addresses that hold what they hold: whoever has one keeps it for a year."""

from __future__ import annotations

import hashlib
import mimetypes
from importlib.resources import files
from importlib.resources.abc import Traversable
from types import MappingProxyType

from starlette.responses import Response

KEPT = "public, max-age=31536000, immutable"
DIGITS = 12


class Statics:
    """The files of `static/`, read once. An address is `/static/DIGEST/NAME`; any other digest is not found."""

    def __init__(self) -> None:
        self._files = MappingProxyType(
            {
                name: (_digest(content), content)
                for name, content in _read(files("fencerow.web.dashboard") / "static")
            }
        )

    def address(self, name: str) -> str:
        """Below the dashboard's own path."""
        return f"/static/{self._files[name][0]}/{name}"

    def response(self, digest: str, name: str) -> Response | None:
        """The file of this address, if there is one."""
        found = self._files.get(name)
        if found is None or found[0] != digest:
            return None
        media = mimetypes.guess_type(name)[0] or "application/octet-stream"
        return Response(found[1], headers={"cache-control": KEPT}, media_type=media)


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:DIGITS]


def _read(folder: Traversable, before: str = "") -> list[tuple[str, bytes]]:
    found: list[tuple[str, bytes]] = []
    for each in folder.iterdir():
        name = f"{before}{each.name}"
        found += _read(each, f"{name}/") if each.is_dir() else [(name, each.read_bytes())]
    return found
